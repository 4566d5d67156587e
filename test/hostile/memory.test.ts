import fc from 'fast-check';
import { sharedStack } from '../support/shared-stack.ts';
import type { RunningStack } from '../support/stack.ts';
import type { Tenant } from '../support/tenant.ts';
import { COUNT, printTried, SEED, withstand } from './attack.ts';

const FORMATS = [
  ...['date', 'time', 'date-time', 'duration', 'uri', 'uri-reference', 'uri-template', 'url', 'email', 'hostname'],
  ...['ipv4', 'ipv6', 'regex', 'uuid', 'json-pointer', 'json-pointer-uri-fragment', 'relative-json-pointer', 'byte'],
  ...['iso-time', 'iso-date-time', 'int32', 'int64', 'float', 'double', 'password', 'binary'],
];
const PATTERNS = ['^(a+)+$', '(a|a)*b', '^(\\w+\\s?)*$', '(x+x+)+y', '^([^,]*,){20}$', '(.*)*@', '^(a?){50}a{50}$'];
const CHARACTERS = 200_000;
/** Texts that are long, repeat, and fail at their very end. */
const adverse = fc
  .tuple(
    fc.constantFrom('', 'http://', 'a@', '/', '{', 'P', '2020-01-01T', '1', '::', '%', '[', 'mailto:'),
    fc.constantFrom(
      ...['a', '/', 'a/', '%41', '%', '.', 'a.', '-', ':', '1:', '@', '(', '{a}', ' ', '0', '1Y', 'é', '😀', '=\n'],
    ),
    fc.constantFrom('', '!', '\n', '@', '%', '}', 'x', ' ', '//', '😀'),
  )
  .map(([start, middle, end]) => start + middle.repeat(CHARACTERS / middle.length) + end);
/** Schemas that are small as text and large when they are compiled. */
const large = fc
  .tuple(
    fc.integer({ min: 50, max: 400 }),
    fc.constantFrom('properties', 'anyOf', 'enum', 'patternProperties'),
    fc.nat(),
  )
  .map(([size, keyword, salt]) => {
    const items = Array.from({ length: size }, (_, i) => `p${salt}-${i}`);
    if (keyword === 'enum') return { properties: { a: { enum: items } } };
    if (keyword === 'anyOf') return { anyOf: items.map((name) => ({ required: [name] })) };
    return { [keyword]: Object.fromEntries(items.map((name) => [name, { type: 'string', maxLength: 9 }])) };
  });
const LEVELS = 60;
/** Legal bodies of nearly a mebibyte, made to be slow to read. */
const BODIES = [
  () => `{${Array.from({ length: 70_000 }, (_, i) => `"m${i}":${i}`).join()}}`,
  () => `{"a":[${'1.5e3,'.repeat(150_000)}0]}`,
  () => `{"a":"${'\\u0041'.repeat(160_000)}"}`,
  () => `{"a":[${'{},'.repeat(300_000)}{}]}`,
  () => `{"a":[${`${'['.repeat(LEVELS)}${']'.repeat(LEVELS)},`.repeat(8_000)}0]}`,
  () => `{${Array.from({ length: 40_000 }, (_, i) => `"\\u006d${i}":"\\n"`).join()}}`,
];

let stack: RunningStack;
let hostile: Tenant;
let neighbour: Tenant;
beforeAll(async () => {
  stack = await sharedStack();
  [hostile, neighbour] = await Promise.all([stack.tenant(), stack.tenant()]);
  await create(neighbour, 'mine', { type: 'object', properties: { n: { type: 'integer' } } });
});
afterAll(printTried);

async function create(tenant: Tenant, type: string, jsonSchema: object): Promise<void> {
  expect((await tenant.request('POST', '/api/memory/types', { type, jsonSchema })).status).toBe(201);
}

async function neighbourWrites(n: number): Promise<void> {
  const key = `k-${process.hrtime.bigint()}`;
  const reply = await neighbour.request('POST', '/api/memory/objects', { type: 'mine', key, content: { n } });
  expect([reply.status, reply.body.content]).toEqual([201, { n }]);
  const read = await neighbour.request('GET', `/api/memory/objects/${reply.body.id}`);
  expect([read.status, read.body.key]).toEqual([200, key]);
}

describe('the objects of a neighbour are written and read while another organization', () => {
  it('sends texts that are slow to check', async () => {
    const checks = [...FORMATS.map((format) => ({ format })), ...PATTERNS.map((pattern) => ({ pattern }))];
    for (const [i, check] of checks.entries()) await create(hostile, `text-${i}`, { properties: { a: check } });
    const texts = fc.sample(adverse, { seed: SEED, numRuns: 100 * COUNT });
    await withstand({
      name: 'texts against formats and patterns',
      send: (n) =>
        hostile.requestOnce('POST', '/api/memory/objects', {
          type: `text-${n % checks.length}`,
          key: `k-${n}`,
          content: { a: texts[n % texts.length] },
        }),
      atOnce: 4,
      atLeast: checks.length * COUNT,
      allowed: [503],
      neighbour: neighbourWrites,
      neighbours: 10 * COUNT,
    });
  });

  it('creates types whose schemas are large when they are compiled', async () => {
    const schemas = fc.sample(large, { seed: SEED, numRuns: 100 * COUNT });
    await withstand({
      name: 'schemas against the cache of compiled schemas',
      send: (n) =>
        hostile.requestOnce('POST', '/api/memory/types', {
          type: `large-${n}`,
          jsonSchema: schemas[n % schemas.length],
        }),
      atOnce: 4,
      atLeast: 100,
      allowed: [503],
      neighbour: neighbourWrites,
      neighbours: 10 * COUNT,
    });
  });

  it('sends bodies that are slow to read', () =>
    withstand({
      name: 'bodies of nearly 1 MiB',
      send: (n) => hostile.requestOnce('POST', '/api/memory/objects', BODIES[n % BODIES.length]!()),
      atOnce: 4,
      atLeast: 12 * COUNT,
      neighbour: neighbourWrites,
      neighbours: 10 * COUNT,
    }));
});
