import type { RunLimits } from '../../../src/runtimes/rules.ts';
import type { RunResult } from '../../../src/runtimes/runtime.ts';
import { testPool, type TestPool } from '../runners/pool-fixture.ts';

let pool: TestPool;
beforeAll(() => {
  pool = testPool();
});
afterAll(() => pool.stop());

const run = (source: string, limits: Partial<RunLimits> = {}, args: unknown = {}): Promise<RunResult> =>
  pool.run(source, { type: 'script', args, limits: { maxSteps: 1_000_000, ...limits } });
const returning = (expression: string): Promise<RunResult> => run(`async function run(args) { return ${expression}; }`);
const output = async (result: Promise<RunResult>): Promise<unknown> => {
  const ended = await result;
  return ended.outcome === 'succeeded' ? (JSON.parse(ended.outputText) as unknown) : ended;
};

describe('a script', () => {
  it('has the language and nothing else', async () => {
    const names = 'Object.getOwnPropertyNames(globalThis).filter((name) => !/^[A-Z]/.test(name)).sort()';
    expect(await output(returning(names))).toEqual([
      'console',
      'decodeURI',
      'decodeURIComponent',
      'encodeURI',
      'encodeURIComponent',
      'escape',
      'eval',
      'globalThis',
      'isFinite',
      'isNaN',
      'parseFloat',
      'parseInt',
      'run',
      'undefined',
      'unescape',
    ]);
    const classes = 'Object.getOwnPropertyNames(globalThis).filter((name) => /^[A-Z]/.test(name))';
    expect(await output(returning(classes))).not.toEqual(
      expect.arrayContaining([expect.stringMatching(/^(Atomics|WebAssembly|Worker|Buffer)$/)]),
    );
  });

  it.each([
    'typeof process + typeof require + typeof fetch + typeof setTimeout + typeof performance',
    'typeof this.constructor.constructor("return this.process")()',
    'typeof (0, eval)("this").process',
    'typeof Function("return this.require")()',
    '[].constructor.constructor("return typeof process")()',
    '(async () => {}).constructor("return typeof process")()',
    '(function* () {}).constructor("yield typeof process")().next().value',
    'new Proxy({}, { get: (_, name) => typeof globalThis[name] }).process',
    'typeof run.caller + typeof args.__proto__.constructor.constructor("return process.env")',
  ])('reaches nothing of the process that runs it: %s', async (expression) => {
    const result = await returning(expression);
    if (result.outcome === 'succeeded') expect(result.outputText).toMatch(/^"(undefined)+(function)?"$/);
    else expect(result).toMatchObject({ outcome: 'failed', message: expect.stringMatching(/^[A-Z][a-z]+Error/) });
  });

  it('imports no module', async () => {
    expect(await returning('import("node:fs")')).toMatchObject({ outcome: 'failed' });
    expect(await run('import fs from "node:fs"; function run() {}')).toMatchObject({ outcome: 'failed' });
  });

  it('has a clock of whole milliseconds', async () => {
    expect(await output(returning('[Date.now(), +new Date()].every(Number.isInteger)'))).toBe(true);
  });

  it('keeps nothing for the next run, of the same agent or another one', async () => {
    const leaving = `
      globalThis.left = 1; Array.prototype.left = 2; Object.prototype.left = 3;
      JSON.stringify = () => '"changed"'; Promise.prototype.then = undefined;
      function run() { return 'done'; }`;
    expect(await output(run(leaving))).toBe('done');
    const looking = `
      const found = [typeof left, typeof [].left, typeof ({}).left, JSON.stringify(1), typeof Promise.prototype.then];
      function run() { return found; }`;
    expect(await output(run(looking))).toEqual(['undefined', 'undefined', 'undefined', '1', 'function']);
  });

  it('has other random numbers in each run', async () => {
    const two = () => output(returning('[Math.random(), Math.random()]')) as Promise<number[]>;
    const all = [...(await two()), ...(await two())];
    expect(new Set(all).size).toBe(4);
    for (const number of all) expect(number >= 0 && number < 1).toBe(true);
  });

  it('does no work after it has ended', async () => {
    const later = 'function run() { const again = () => Promise.resolve().then(again); again(); return 1; }';
    expect(await run(later, { wallMs: 300 })).toMatchObject({ outcome: 'timed_out' });
    expect(await output(returning('2'))).toBe(2);
  });

  it.each([
    "String.prototype.slice = () => 'x'.repeat(5_000); function run() { throw 'a'; }",
    "RegExp.prototype.exec = () => ['', 'x'.repeat(5_000), 'y'.repeat(5_000)]; function run() { null.x; }",
  ])('fails by its own fault, however long it makes the message: %s', async (source) => {
    expect(await run(source)).toMatchObject({
      ...{ outcome: 'failed', usage: { steps: expect.any(Number) } },
      message: expect.stringMatching(/^.{1,1000}$/),
    });
  });

  it('may change what it likes of the language, and the output is JSON all the same', async () => {
    const changed = `
      JSON.parse = JSON.stringify = String = () => { throw 1; };
      Object.prototype.toJSON = () => 'all';
      Error.prototype.toString = () => { throw 2; };
      function run() { return { a: 1 }; }`;
    expect(await output(run(changed))).toBe('all');
    const joined = 'String.prototype.concat = () => "HACK"; function run() { return { a: 1 }; }';
    expect(await output(run(joined))).toEqual({ a: 1 });
  });

  it('takes a hundred steps at least', async () => {
    expect(await returning('1')).toMatchObject({ outcome: 'succeeded', usage: { steps: 100 } });
    expect(await run('function run() { return 1; }', { maxSteps: 99 })).toMatchObject({
      outcome: 'failed',
      message: 'The script takes more than 99 steps',
    });
  });

  it('has as much memory in every run, however much the run before took', async () => {
    const most = `function run() {
      const all = [];
      try { for (;;) all.push(new Uint8Array(100_000)); } catch {}
      return all.length;
    }`;
    const limits = { memoryMb: 40, maxSteps: 100_000 };
    const first = await output(run(most, limits));
    expect(first).toBeGreaterThan(100);
    await run('function run() { return new Uint8Array(16e6).length; }', limits);
    expect(await output(run(most, limits))).toBe(first);
    expect(await run('function run() { throw null; }', limits)).toMatchObject({ message: 'The script failed' });
  });

  it.each([
    ['deep recursion', 'function run() { return run(); }'],
    ['recursion of the engine', 'let a = []; for (let i = 0; i < 1e5; i++) a = [a]; function run() { return a; }'],
    ['deep JSON', 'function run() { return JSON.parse("[".repeat(1e5)); }'],
    ['deep source', `function run() { return eval(${'"(".repeat(1e5)'}); }`],
    ['deep patterns', 'function run() { return new RegExp("(?:".repeat(1e5)).test(""); }'],
    ['a long text', 'function run() { let s = "x"; for (;;) s += s; }'],
    ['many objects', 'function run() { const all = []; for (;;) all.push({}); }'],
    ['large buffers', 'function run() { const all = []; for (;;) all.push(new Uint8Array(1e6)); }'],
    ['a large number', 'function run() { let n = 3n; for (;;) n *= n; }'],
    ['a promise without end', 'function run() { return new Promise(() => {}); }'],
    [
      'an error with no memory left',
      'function run() { const all = []; try { for (;;) all.push([]); } catch { throw all; } }',
    ],
    ['a null', 'function run() { throw null; }'],
    ['an error that cannot be read', 'function run() { throw new Proxy(new Error(), { get() { throw 1; } }); }'],
  ])('fails by %s, and the next run succeeds', async (_what, source) => {
    expect(await run(source, { memoryMb: 64 })).toMatchObject({
      outcome: 'failed',
      message: expect.stringMatching(/./),
    });
    expect(await output(returning('1 + 1'))).toBe(2);
  });

  it.each([
    ['an endless loop', 'function run() { for (;;); }'],
    ['a loop that catches its end', 'function run() { for (;;) try { for (;;); } catch {} }'],
    ['a pattern that goes back and forth', 'function run() { return /(a+)+$/.test("a".repeat(40) + "b"); }'],
    ['a flood of promises', 'async function run() { for (;;) await 1; }'],
    ['a sort that never agrees', 'function run() { for (;;) [3, 2, 1].sort(() => -1); }'],
    ['one call that takes long', 'function run() { return String(new Array(1_000_000_000)); }'],
    [
      'a loop while its error is read',
      'function run() { throw { get message() { for (;;); }, __proto__: Error.prototype }; }',
    ],
    ['a loop at its top level', 'for (;;);'],
  ])('is stopped by its limit of time, whatever it does: %s', async (_what, source) => {
    expect(await run(source, { wallMs: 400, maxSteps: 1e9 })).toMatchObject({ outcome: 'timed_out' });
    expect(await output(returning('1 + 1'))).toBe(2);
  });
});
