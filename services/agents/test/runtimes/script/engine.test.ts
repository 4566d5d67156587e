import { openSandbox } from '../../../src/runtimes/script/sandbox.ts';
import { loadQuickJs, MB, PAGE_BYTES, type Engine, type Host } from '../../../src/runtimes/script/engine.ts';

/** The build has its stack in these pages (`__stack_pointer` of the module, and 5 MB below); they hold no value. */
const STACK_PAGES = [2, 80] as const;
const HOST: Host = {
  tick: () => false,
  callTool: () => {
    throw new Error('no tool is called here');
  },
};

let engine: Engine;
beforeAll(async () => {
  engine = await loadQuickJs()(64);
});

function evaluated(source: string): string {
  const { context } = engine;
  return context.getString(context.unwrapResult(context.evalCode(source)));
}

/** Its memory without the stack. */
function values(bytes: number): Buffer[] {
  const memory = Buffer.from(engine.memory.buffer, 0, bytes);
  const [from, to] = STACK_PAGES.map((page) => page * PAGE_BYTES);
  return [Buffer.from(memory.subarray(0, from)), Buffer.from(memory.subarray(to))];
}

const lastUsedByte = (): number => new Uint8Array(engine.memory.buffer).findLastIndex((byte) => byte !== 0);

it('has the same memory at the beginning of every run', () => {
  const usedBytes = lastUsedByte() + 1;
  const before = values(usedBytes);
  const leaving = `
    globalThis.left = [Array.from({ length: 1e5 }, (_, i) => ({ i })), Symbol.for('left'), /l(e|f)+t/.exec('left')];
    Object.prototype.left = () => left; Promise.resolve().then(() => left); String(left.length)`;
  for (let i = 0; i < 3; i++) {
    engine.restart(HOST);
    expect(evaluated(leaving)).toBe('3');
    expect(values(usedBytes).every((part, at) => part.equals(before[at]!))).toBe(false);
  }
  engine.restart(HOST);
  expect(values(usedBytes).every((part, at) => part.equals(before[at]!))).toBe(true);
  expect(engine.context.runtime.hasPendingJob()).toBe(false);
});

it('takes for new memory what a run had filled, and no value of that run is in it', () => {
  const fill = "const all = []; for (let i = 0; i < 400; i++) all.push('secret'.repeat(8_000)); String(all.length)";
  const look = `
    const found = [new Uint8Array(1e7), new Float64Array(1e6)].map((one) => one.every((value) => value === 0));
    String(found)`;
  engine.restart(HOST);
  expect(evaluated(fill)).toBe('400');
  expect(engine.memory.buffer.byteLength).toBeGreaterThan(16 * MB);
  engine.restart(HOST);
  expect(evaluated(look)).toBe('true,true');
});

it('has another sequence of random numbers in each run, evenly in all parts of [0, 1)', () => {
  const sequence = 'String(Array.from({ length: 4_000 }, () => Math.random()))';
  const runs = [1, 2].map((seed) => {
    engine.restart(HOST);
    const { context, prelude } = engine;
    const state = context.newString(JSON.stringify([seed, 0, 0, 0]));
    context.unwrapResult(context.callFunction(prelude.seedRandom, context.undefined, state));
    return evaluated(sequence).split(',').map(Number);
  });
  expect(new Set(runs.flat()).size).toBe(8_000);
  for (const numbers of runs)
    for (let tenth = 0; tenth < 10; tenth++)
      expect(numbers.filter((number) => Math.floor(number * 10) === tenth).length).toBeGreaterThan(320);
});

it('calls tools also where its memory grows in the middle of a call', async () => {
  const evaluate = openSandbox(
    () => undefined,
    () => Promise.resolve('{"result":1}'),
  );
  const limits = { wallMs: 5_000, maxSteps: 10_000, memoryMb: 64, outputBytes: 1_000 };
  // somewhere among these sizes the memory is full just when a promise is made
  for (let size = 11_100_000; size < 11_220_000; size += 2_000) {
    const source = `async function run() {
      const most = new Uint8Array(${size});
      await Promise.all(Array.from({ length: 200 }, () => memory.get()));
      return most.length;
    }`;
    const script = { source, argsText: '{}', trace: false, operations: ['get'], maxToolCalls: 200 };
    expect(await evaluate('a', script, limits)).toEqual({ outcome: 'succeeded', outputText: `${size}`, steps: 100 });
  }
});
