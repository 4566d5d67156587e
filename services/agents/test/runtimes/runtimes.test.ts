import type { ServerResponse } from 'node:http';
import { fairScheduler } from 'platform/core/fair-scheduler.ts';
import type { RunLimits } from '../../src/runtimes/rules.ts';
import type { RunRequest, RunResult } from '../../src/runtimes/runtime.ts';
import { answerWith, startEndpoint, type Endpoint } from './http/endpoint.ts';
import { computing, LIMITS, testPool, type TestPool } from './runners/pool-fixture.ts';
import { requestFor } from './request-for.ts';
import { SECRET, testRuntimes } from './test-runtimes.ts';

/** An agent for each case of the suite, in each runtime that evaluates a source. */
const SOURCES = {
  expression: {
    language: 'jsonata',
    doubles: '{ "twice": a * 2 }',
    fails: '$error("not today")',
    faulty: '$number(secret)',
    wrong: '{ "a": ',
    yieldsNothing: '()',
    endless: '($f := function($n) { $f($n + 1) }; $f(0))',
    long: '$pad("", 20000, "x")',
    deep: '($f := function($n) { $n = 0 ? 1 : { "a": $f($n - 1) } }; $f(70))',
    traced: 'fail ? $error("no") : 1',
    greedy: '[1..50000].{ "a": [1..500] }',
  },
  script: {
    language: 'javascript',
    doubles: 'function run({ a }) { return { twice: a * 2 }; }',
    fails: 'async function run() { throw new Error("not today"); }',
    faulty: 'function run({ secret }) { return JSON.parse(secret); }',
    wrong: 'function run() { return (; }',
    yieldsNothing: 'function run() {}',
    endless: 'function run() { for (;;); }',
    long: 'function run() { return "x".repeat(20000); }',
    deep: 'function run() { let a = 1; for (let i = 0; i < 70; i++) a = [a, 2]; return a; }',
    traced:
      'function run({ fail }) { console.log("seen", { a: 1 }, 2); console.error("then"); if (fail) throw "no"; return 1; }',
    greedy: 'function run() { const all = []; for (;;) all.push({ text: String(all.length) }); }',
  },
} as const;
const SOURCE_TYPES = Object.keys(SOURCES) as (keyof typeof SOURCES)[];

/** What the endpoint of the http agents answers on each path. */
const ANSWERS: Record<string, (response: ServerResponse, args: { a: number; fail?: boolean }) => void> = {
  doubles: (response, { a }) => answerWith(response, { output: { twice: a * 2 } }),
  fails: (response) => answerWith(response, { error: 'not today' }),
  yieldsNothing: (response) => answerWith(response, {}),
  endless: () => undefined,
  traced: (response, { fail }) =>
    answerWith(response, { ...(fail ? { error: 'no' } : { output: 1 }), messages: ['seen {"a":1} 2', 'then'] }),
  long: (response) => answerWith(response, { output: 'x'.repeat(20_000) }),
  deep: (response) => void response.end(`{"output":${'['.repeat(70)}1${']'.repeat(70)}}`),
};

let pool: TestPool;
let endpoint: Endpoint;
let runtimes: ReturnType<typeof testRuntimes>;
beforeAll(async () => {
  pool = testPool();
  runtimes = testRuntimes(pool, { schedule: fairScheduler(), secretValues: () => Promise.resolve([SECRET]) });
  endpoint = await startEndpoint(({ path, body }, response) =>
    ANSWERS[path.slice(1)]!(response, JSON.parse(body).args),
  );
});
afterAll(async () => {
  await runtimes.stop();
  await endpoint.close();
});

type Case = keyof (typeof SOURCES)['script'];
type Given = Partial<Omit<RunRequest, 'limits'>> & { args?: unknown; limits?: Partial<RunLimits> };

const definitionOf = (type: string, agent: Case): { type: string } =>
  type === 'http'
    ? { type, ...{ url: `${endpoint.url}/${agent}`, secretRef: 'signing' } }
    : { type, ...{ language: SOURCES[type as 'script'].language, source: SOURCES[type as 'script'][agent] } };
const runOf =
  (type: string) =>
  (agent: Case, { args = {}, limits, ...given }: Given = {}): Promise<RunResult> =>
    runtimes.byType[type]!.run({
      ...requestFor(definitionOf(type, agent), args),
      limits: { ...LIMITS, outputBytes: 10_000, ...limits },
      ...given,
    });

describe.each([...SOURCE_TYPES, 'http'])('the runtime %s', (type) => {
  const run = runOf(type);
  const usage =
    type === 'http' ? { calls: expect.any(Number) } : { steps: expect.any(Number), cpuMs: expect.any(Number) };
  const check = (more: object) => runtimes.byType[type]!.check('one', { ...definitionOf(type, 'doubles'), ...more });

  it('accepts an agent that it can run, and names what is wrong with another one', async () => {
    expect(await check({})).toEqual([]);
    expect(await check({ sauce: 1 })).toEqual([{ path: '/sauce', message: expect.any(String) }]);
    expect(await runtimes.byType[type]!.check('one', { type })).toHaveLength(2);
  });

  it('gives the output of a success, and what it has used', async () => {
    const result = await run('doubles', { args: { a: 21 } });
    expect(result).toEqual({ outcome: 'succeeded', outputText: '{"twice":42}', messages: [], usage });
    const used = Object.keys('usage' in result ? result.usage : {});
    expect(used).toEqual([...runtimes.byType[type]!.units]);
  });

  it('shows what the author said about a failure', async () => {
    expect(await run('fails')).toEqual({ outcome: 'failed', message: 'not today', messages: [], usage });
  });

  it.each([
    ['yieldsNothing', type === 'http' ? 'must be {"output": …}' : 'no output'],
    ['long', type === 'http' ? 'too large' : 'larger than 10000 bytes'],
    ['deep', 'more than 64 levels'],
  ] as const)('fails an agent that %s, by its output', async (agent, message) => {
    expect(await run(agent)).toEqual({
      outcome: 'failed',
      message: expect.stringContaining(message),
      messages: [],
      usage,
    });
  });

  it('keeps what the agent writes as messages, of a success and of a failure, if its definition asks for them', async () => {
    const text = (written: string) => ({ role: 'agent', parts: [{ type: 'text', text: written }] });
    const messages = type === 'expression' ? [] : [text('seen {"a":1} 2'), text('then')];
    expect(await run('traced', { trace: true })).toMatchObject({ outcome: 'succeeded', messages });
    expect(await run('traced', { trace: true, args: { fail: true } })).toMatchObject({ outcome: 'failed', messages });
    expect(await run('traced')).toMatchObject({ outcome: 'succeeded', messages: [] });
  });

  it('ends a run at its limit of time, with what it has used', async () => {
    const result = await run('endless', { limits: { wallMs: 300 } });
    expect(result).toEqual({ outcome: 'timed_out', usage });
    for (const used of Object.values('usage' in result ? result.usage : {})) expect(used).toBeGreaterThan(0);
  });

  it('ends a run that is cancelled', async () => {
    const caller = new AbortController();
    const running = run('endless', { signal: caller.signal, onStart: () => setImmediate(() => caller.abort()) });
    expect(await running).toEqual({ outcome: 'cancelled', usage });
  });

  it('ends a run that was cancelled before it began', async () => {
    expect(await run('endless', { signal: AbortSignal.abort() })).toMatchObject({ outcome: 'cancelled' });
  });
});

describe.each(SOURCE_TYPES)('the runtime %s, whose agents are a source', (type) => {
  const run = runOf(type);
  const usage = { steps: expect.any(Number), cpuMs: expect.any(Number) };

  it('names what is wrong with a source', async () => {
    const { language, doubles, wrong } = SOURCES[type];
    const check = (source: string) => runtimes.byType[type]!.check('one', { type, language, source });
    expect(await check(doubles)).toEqual([]);
    expect(await check(wrong)).toEqual([{ path: '/source', message: expect.stringMatching(/./) }]);
    expect(await check('')).toEqual([{ path: '/source', message: expect.stringMatching(/1/) }]);
  });

  it('measures at least one step and one millisecond, and the same steps each time', async () => {
    const [one, other] = [await run('doubles', { args: { a: 1 } }), await run('doubles', { args: { a: 1 } })];
    for (const result of [one, other]) if ('usage' in result) expect(result.usage.cpuMs).toBeGreaterThan(0);
    expect(stepsOf(one)).toBeGreaterThan(0);
    expect(stepsOf(one)).toBe(stepsOf(other));
  });

  it('shows no value of the args in a failure of the language', async () => {
    const result = await run('faulty', { args: { secret: 'hunter2' } });
    expect(result).toMatchObject({ outcome: 'failed', message: expect.stringMatching(/(line|character) \d+/) });
    expect(JSON.stringify(result)).not.toContain('hunter2');
  });

  it('ends a run at its limit of steps as a failure', async () => {
    expect(await run('endless', { limits: { maxSteps: 20_000 } })).toEqual({
      outcome: 'failed',
      message: expect.stringContaining('more than 20000 steps'),
      messages: [],
      usage: { ...usage, steps: 20_000 },
    });
  });

  it('ends a run at its limit of memory as a failure, and the next one succeeds', async () => {
    expect(await run('greedy', { limits: { memoryMb: 16 } })).toEqual({
      outcome: 'failed',
      message: expect.stringMatching(/more than \d+ MB of memory/),
      messages: [],
      usage,
    });
    expect(await run('doubles', { args: { a: 1 } })).toMatchObject({ outcome: 'succeeded' });
  });

  it('interrupts a run whose process dies, free of charge', async () => {
    await run('doubles', { args: { a: 1 } });
    const running = run('endless');
    process.kill(await computing(), 'SIGKILL');
    expect(await running).toEqual({ outcome: 'interrupted' });
  });
});

const stepsOf = (result: RunResult): number => ('usage' in result ? (result.usage.steps ?? 0) : 0);
