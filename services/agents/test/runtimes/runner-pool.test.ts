import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeLog } from 'platform/log.ts';
import { startRunnerPool, type EvaluationResult, type RunLimits, type RunnerPool } from '../../src/runtimes/runner-pool.ts';

const LIMITS: RunLimits = { wallMs: 20_000, maxSteps: 50_000_000, memoryMb: 64, outputBytes: 1_000_000 };
const ENDLESS = '($f := function($n) { $f($n + 1) }; $f(0))';
const log = makeLog('agents', 'silent');

let pool: RunnerPool;
beforeAll(() => { pool = startRunnerPool({ size: 2, queueLimit: 3, recycleAfter: 500, log }); });
afterAll(() => pool.stop());

function evaluate(source: string, { args = {}, limits = {}, organizationId = 'one', signal = new AbortController().signal, on = pool }: { args?: unknown; limits?: Partial<RunLimits>; organizationId?: string; signal?: AbortSignal; on?: RunnerPool } = {}): Promise<EvaluationResult> {
  return on.evaluate({ runtime: { type: 'expression', source }, argsText: JSON.stringify(args), limits: { ...LIMITS, ...limits }, organizationId, signal });
}

describe('a run of an expression', () => {
  it('answers with its output as JSON text and the steps it took', async () => {
    expect(await evaluate('{ "total": $sum(items.price) }', { args: { items: [{ price: 1 }, { price: 2.5 }] } })).toMatchObject({ outcome: 'succeeded', outputText: '{"total":3.5}' });
  });

  it('takes the same number of steps every time', async () => {
    const [one, other] = await Promise.all([1, 2].map(() => evaluate('$sum([1..100].($ * 2))')));
    expect(one).toEqual(other);
  });

  it.each([
    ['an error of its own', '$error("no such customer")', 'no such customer'],
    ['a call of nothing', '$nothing()', 'non-function'],
    ['no result', 'missing.path', 'no result'],
    ['a function as result', 'function($x) { $x }', 'no result'],
    ['a pattern that needs back-tracking', '$match("aaaa!", /(?=a)b/)', 'linear time'],
    ['endless recursion that is no tail call', '($f := function($n) { 1 + $f($n) }; $f(0))', ''],
  ])('fails with %s, and says so', async (_what, source, message) => {
    const result = await evaluate(source);
    expect(result).toMatchObject({ outcome: 'failed', code: 'agent_failed', message: expect.stringContaining(message) });
  });

  it('ends at its limit of steps', async () => {
    expect(await evaluate(ENDLESS, { limits: { maxSteps: 1_000 } })).toMatchObject({ outcome: 'failed', message: expect.stringContaining('1000 steps'), steps: 1_001 });
  });

  it('ends at its limit of time, with the steps it took', async () => {
    const result = await evaluate(ENDLESS, { limits: { wallMs: 300 } });
    expect(result).toMatchObject({ outcome: 'timed_out', steps: expect.any(Number) });
    expect((result as { steps: number }).steps).toBeGreaterThan(0);
  });

  it('ends at its limit of output', async () => {
    expect(await evaluate('$join([1..1000].("0123456789"))', { limits: { outputBytes: 1_000 } })).toMatchObject({ outcome: 'failed', message: expect.stringContaining('larger than 1000 bytes') });
  });

  it('ends at its limit of memory, and the next run is answered', async () => {
    expect(await evaluate('$length($pad("x", 500000000))')).toMatchObject({ outcome: 'failed' });
    expect(await evaluate('1')).toMatchObject({ outcome: 'succeeded' });
  });

  it('is answered while a hostile neighbour hangs in one built-in function', async () => {
    const cancel = new AbortController();
    const hostile = evaluate('$map([1..10000000], function($v) { $v }) ~> $sum()', { signal: cancel.signal });
    expect(await evaluate('1', { organizationId: 'two' })).toMatchObject({ outcome: 'succeeded' });
    cancel.abort();
    expect(['cancelled', 'failed', 'succeeded']).toContain((await hostile).outcome);
  });

  it('ends when it is cancelled', async () => {
    const cancel = new AbortController();
    const result = evaluate(ENDLESS, { signal: cancel.signal });
    expect(await evaluate('1', { organizationId: 'two' })).toMatchObject({ outcome: 'succeeded' });
    cancel.abort();
    expect(await result).toMatchObject({ outcome: 'cancelled' });
  });

  it('is linear in a pattern that hangs a back-tracking engine', async () => {
    expect(await evaluate('$match("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", /^(a+)+$/)')).toMatchObject({ outcome: 'failed', message: expect.stringContaining('no result') });
  });
});

describe('the pool', () => {
  it('bounds its queue and takes organizations in turn', async () => {
    const own = startRunnerPool({ size: 1, queueLimit: 3, recycleAfter: 500, log });
    const cancel = new AbortController();
    const order: string[] = [];
    const first = evaluate(ENDLESS, { on: own, signal: cancel.signal });
    const waiting = ['a1', 'a2', 'b1'].map((name) => evaluate('1', { on: own, organizationId: name[0] }).then(() => order.push(name)));
    expect(own.queued).toBe(3);
    expect(() => evaluate('1', { on: own })).toThrow(expect.objectContaining({ reason: 'QUEUE_FULL' }));
    cancel.abort();
    await Promise.all([first, ...waiting]);
    expect(order).toEqual(['a1', 'b1', 'a2']);
    await own.stop();
  });

  it('forgets a queued run that is cancelled', async () => {
    const own = startRunnerPool({ size: 1, queueLimit: 1, recycleAfter: 500, log });
    const [running, queued] = [new AbortController(), new AbortController()];
    const first = evaluate(ENDLESS, { on: own, signal: running.signal });
    const second = evaluate('1', { on: own, signal: queued.signal });
    queued.abort();
    expect(await second).toEqual({ outcome: 'cancelled', steps: 0 });
    expect(own.queued).toBe(0);
    running.abort();
    await first;
    await own.stop();
  });

  it('replaces a runner after its share of runs, and one of another heap size', async () => {
    const own = startRunnerPool({ size: 1, queueLimit: 10, recycleAfter: 2, log });
    for (const memoryMb of [64, 64, 64, 32, 64]) expect(await evaluate('1', { on: own, limits: { memoryMb } })).toMatchObject({ outcome: 'succeeded' });
    await own.stop();
  });

  it('interrupts what runs and waits when it stops', async () => {
    const own = startRunnerPool({ size: 1, queueLimit: 1, recycleAfter: 2, log });
    const results = [evaluate(ENDLESS, { on: own }), evaluate('1', { on: own })];
    await own.stop();
    expect(await Promise.all(results)).toEqual([{ outcome: 'interrupted' }, { outcome: 'interrupted' }]);
  });

  it('leaves no runner behind when its process is killed, not even one in an endless evaluation', async () => {
    const parent = spawn(process.execPath, [join(import.meta.dirname, 'endless-parent.ts')], { stdio: ['ignore', 'pipe', 'inherit'] });
    const runner = await new Promise<number>((resolve) => parent.stdout.once('data', (chunk: Buffer) => resolve(Number(chunk))));
    parent.kill('SIGKILL');
    while (isRunning(runner)) await new Promise((resolve) => setImmediate(resolve));
    expect(isRunning(runner)).toBe(false);
  });
});

function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}
