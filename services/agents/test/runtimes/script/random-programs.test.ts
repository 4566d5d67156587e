import fc from 'fast-check';
import { testPool, type TestPool } from '../runners/pool-fixture.ts';

const names = ['a', 'b', 'args', 'globalThis', 'Object.prototype', 'Array.prototype', 'Promise.prototype', 'run'];
const values = [
  ...['0', '-1', '1e9', '2n ** 64n', '""', '"x".repeat(1e5)', '[]', '{}', 'null', 'undefined', '/(a|a)*b/', 'NaN'],
  ...[
    'new Array(1e6)',
    'new Uint8Array(1e6)',
    'new Map()',
    'Symbol("s")',
    '() => a',
    'async () => b',
    'new Proxy({}, {})',
  ],
];
const members = ['then', 'toJSON', 'length', 'constructor', '__proto__', 'valueOf', 'toString', 'message', 'stack'];
const calls = [
  ...['JSON.stringify', 'JSON.parse', 'Object.freeze', 'Object.keys', 'Reflect.ownKeys', 'String', 'eval', 'Function'],
  ...[
    'Promise.resolve',
    'Promise.all',
    'structuredClone',
    'Object.getPrototypeOf',
    'Array.from',
    'new Proxy',
    'RegExp',
  ],
];

const { statement } = fc.letrec<{ expression: string; statement: string }>((tie) => ({
  expression: fc.oneof(
    { maxDepth: 4, depthIdentifier: 'expression' },
    fc.constantFrom(...names),
    fc.constantFrom(...values),
    fc.tuple(tie('expression'), fc.constantFrom(...members)).map(([of, name]) => `(${of})?.${name}`),
    fc.tuple(fc.constantFrom(...calls), tie('expression')).map(([name, of]) => `${name}(${of})`),
    fc.tuple(tie('expression'), tie('expression')).map(([one, other]) => `(${one}) + (${other})`),
    fc.tuple(tie('expression'), tie('expression')).map(([one, other]) => `[${one}, ${other}]`),
    fc
      .tuple(fc.constantFrom(...members), tie('expression'))
      .map(([name, of]) => `({ get ${name}() { return ${of}; } })`),
    tie('expression').map((of) => `(${of})(a, b)`),
    tie('expression').map((of) => `await (${of})`),
  ),
  statement: fc.oneof(
    { maxDepth: 4, depthIdentifier: 'statement' },
    tie('expression').map((of) => `a = ${of};`),
    tie('expression').map((of) => `b = ${of};`),
    fc
      .tuple(fc.constantFrom(...names), fc.constantFrom(...members), tie('expression'))
      .map(([name, member, of]) => `(${name}).${member} = ${of};`),
    fc.tuple(tie('statement'), tie('statement')).map(([one, other]) => `try { ${one} } catch (e) { b = e; ${other} }`),
    fc.tuple(tie('statement'), tie('statement')).map(([one, other]) => `${one} ${other}`),
    tie('statement').map((of) => `for (let i = 0; i < 1000; i++) { ${of} }`),
    tie('statement').map((of) => `for (;;) { ${of} }`),
    tie('statement').map((of) => `run = async () => { ${of} };`),
    tie('expression').map((of) => `throw ${of};`),
    tie('expression').map((of) => `return ${of};`),
    tie('expression').map((of) => `Promise.resolve().then(() => run(${of.replaceAll('await ', '')}));`),
  ),
}));

let pool: TestPool;
beforeAll(() => {
  pool = testPool();
});
afterAll(() => pool.stop());

const CLEAN = `
const found = [typeof a, typeof b, typeof ({}).toJSON, typeof ({}).then, typeof [].message, Object.isFrozen(Object)];
function run(args) { return [...found, args]; }`;

it('a random program ends within its limits, its runner goes on, and it leaves nothing to the next run', async () => {
  await fc.assert(
    fc.asyncProperty(statement, async (body) => {
      const source = `let a = 1, b = 2; async function run(args) { ${body} return a; }`;
      const limits = { wallMs: 1_000, maxSteps: 20_000, memoryMb: 32, outputBytes: 10_000 };
      const result = await pool.run(source, { type: 'script', args: { a: [1, { b: 'c' }] }, limits });
      expect(['succeeded', 'failed', 'output_invalid', 'timed_out']).toContain(result.outcome);
      if ('message' in result) expect(result.message).not.toMatch(/quickjs|wasm|node:|\/work|runtime\.js/i);
      const next = await pool.run(CLEAN, { type: 'script', args: 7, limits });
      expect(next).toMatchObject({
        outputText: '["undefined","undefined","undefined","undefined","undefined",false,7]',
      });
    }),
    { numRuns: Number(process.env.PROPERTY_RUNS ?? 100) },
  );
}, 900_000);
