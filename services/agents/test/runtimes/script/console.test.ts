import { testPool, type TestPool } from '../runners/pool-fixture.ts';

let pool: TestPool;
beforeAll(() => {
  pool = testPool();
});
afterAll(() => pool.stop());

/** What the script has written when it has run these statements. */
async function writtenBy(statements: string, limits = {}): Promise<string[]> {
  const source = `function run() { ${statements}; return 1; }`;
  const result = await pool.run(source, { type: 'script', trace: true, limits: { maxSteps: 20_000, ...limits } });
  expect(['succeeded', 'failed']).toContain(result.outcome);
  return 'messages' in result ? result.messages.map(({ parts }) => parts[0]!.text) : [];
}

it.each<[string, string[]]>([
  ['console.log("a", 1, null, undefined, true, { b: [2] })', ['a 1 null undefined true {"b":[2]}']],
  ['console.debug(1); console.info(2); console.warn(3); console.error(4)', ['1', '2', '3', '4']],
  ['console.log()', ['']],
  ['console.log("\\u0000\\ud800\\n")', ['\u0000\ufffd\n']],
  ['console.log("before"); throw new Error("no")', ['before']],
  ['console.log("before"); for (;;);', ['before']],
])('keeps what %s writes', async (statements, written) => expect(await writtenBy(statements)).toEqual(written));

it.each([
  'for (;;) console.log("x".repeat(1_000))',
  'for (let i = 0; i < 10_000; i++) console.log("\\u0001".repeat(1_000))',
  'for (let i = 0; i < 300; i++) console.log("x".repeat(100_000), "y")',
  'console.log(...Array(50_000).fill("x"))',
])('keeps no more than its limits of %s', async (statements) => {
  const written = await writtenBy(statements);
  expect(written.length).toBeGreaterThan(0);
  expect(written.length).toBeLessThanOrEqual(100);
  for (const text of written) expect(text.length).toBeLessThanOrEqual(2_000);
  expect(written.join('').length).toBeLessThanOrEqual(16_384);
});

it.each([
  'const a = {}; a.a = a; try { console.log(a) } catch {}',
  'console.log({ toJSON() { throw 1 } })',
  'console.log(new Proxy({}, { ownKeys() { throw 1 }, get() { throw 2 } }))',
  'console.log({ toString() { throw 1 } }, Symbol("s"), 1n, () => 1)',
  'JSON.stringify = () => "]"; JSON.parse = () => 7; console.log("a")',
  'String.prototype.toJSON = () => ({ evil: 1 }); console.log("a", new String("b"))',
  'Array.prototype.push = () => { throw 1 }; Array.prototype[Symbol.iterator] = undefined; console.log("a", "b")',
  'Object.prototype.toJSON = () => "x\\"]"; console.log({})',
  'String.prototype.slice = () => "x".repeat(1e6); console.log("y".repeat(3_000))',
  'String.prototype.concat = () => "[1]"; console.log("a")',
  'String.prototype.concat = () => "x".repeat(1e6); console.log("y".repeat(3_000), { a: 1 })',
  'try { console.log = 1 } catch {} try { globalThis.console = { log: 1 } } catch {} delete globalThis.console; console.log("a")',
])('writes only texts within its limits, whatever the script does: %s', async (statements) => {
  for (const text of await writtenBy(statements)) {
    expect(typeof text).toBe('string');
    expect(text.length).toBeLessThanOrEqual(2_000);
  }
  expect(await writtenBy('console.log("the next run")')).toEqual(['the next run']);
});

it('runs nothing of the script when what it wrote is read', async () => {
  const change = `
    for (const { prototype } of [String, Array, Object, Function, Promise, RegExp, Number])
      for (const name of Object.getOwnPropertyNames(prototype)) {
        const { value, writable } = Object.getOwnPropertyDescriptor(prototype, name);
        if (typeof value !== 'function' || !writable || name === 'constructor') continue;
        prototype[name] = () => { for (;;); };
      }`;
  const source = `${change}; function run() { console.log('a', 'b', 1); return 5; }`;
  const result = await pool.run(source, { type: 'script', trace: true, limits: { maxSteps: 100_000, wallMs: 5_000 } });
  expect(result).toMatchObject({ outcome: 'succeeded', outputText: '5', usage: { steps: 100 } });
  expect('messages' in result && result.messages.map(({ parts }) => parts[0]!.text)).toEqual(['a b 1']);
});

it('an engine that is short of memory says what it can, and the next run has one that is not', async () => {
  await writtenBy('console.log("a"); const all = []; for (;;) all.push({ text: String(all.length) })', {
    memoryMb: 16,
  });
  expect(await writtenBy('console.log("b")')).toEqual(['b']);
});
