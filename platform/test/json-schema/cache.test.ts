import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { makeSchemaCache } from 'platform/json-schema/cache.ts';
import { compileSchema, type CompiledSchema } from 'platform/json-schema/schema.ts';
import { many, object } from './schemas.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** What is kept once for all schemas: code that became hot, pools of RE2. */
const ONCE_BYTES = 1_048_576;

/** Bytes of heap that what `make` returns keeps, beyond what is kept once. */
function heapOf(make: () => unknown): number {
  const heap = (): number => {
    // V8 keeps code that was compiled last for some collections.
    for (let i = 0; i < 6; i++) collectGarbage();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  const before = heap();
  const kept = make();
  const after = heap();
  expect(kept).toBeDefined();
  return after - before - ONCE_BYTES;
}

const letter = (i: number): string => String.fromCharCode(0x4e00 + 3 * i);
/** Schemas of many kinds, different for each `k`, and a value that breaks each of them. */
const classes: Record<string, (k: number) => [schema: unknown, value: unknown]> = {
  'one rule': (k) => [{ const: k }, -1],
  'a record': (k) => [
    {
      type: 'object',
      required: ['id', 'name'],
      additionalProperties: false,
      properties: {
        id: { type: 'string', format: 'uuid' },
        name: { type: 'string', minLength: 1, maxLength: 80 + k },
        tags: { type: 'array', items: { enum: ['a', 'b'] } },
      },
    },
    { id: 1, q: 2, tags: ['c'] },
  ],
  'many properties': (k) => [
    { properties: object(450, (i) => [`p${k}_${i}`, { type: 'string', maxLength: 9 }]) },
    object(450, (i) => [`p${k}_${i}`, 1]),
  ],
  'many keywords': (k) => [
    {
      properties: object(200, (i) => [`p${i}`, { type: ['string', 'null'], minLength: k, multipleOf: 3, maximum: 5 }]),
    },
    object(200, (i) => [`p${i}`, 7]),
  ],
  'many references': (k) => [
    {
      $defs: object(200, (i) => [`d${i}`, { type: 'string', maxLength: k + 1 }]),
      properties: object(200, (i) => [`p${i}`, { $ref: `#/$defs/d${i}` }]),
    },
    object(200, (i) => [`p${i}`, 7]),
  ],
  'many values': (k) => [{ enum: many(800, (i) => ({ [`k${k}`]: `${'x'.repeat(40)}${i}` })) }, {}],
  'many patterns': (k) => [{ allOf: many(150, (i) => ({ pattern: `^a${k}${i}{30}$` })) }, 'a'],
  'patterns of many choices': (k) => [
    { allOf: many(10, (i) => ({ pattern: `(?:${many(300, (j) => `${letter(j + i + k)}x`).join('|')})!` })) },
    'x',
  ],
  'patterns with tables': (k) => [{ allOf: many(2, (i) => ({ pattern: `[^\\p{Lu}x]{20}[\\P{N}y${k}${i}]` })) }, 'x'],
  'a long note': (k) => [{ description: `${k}${'é'.repeat(30_000)}`, type: 'string' }, 1],
};

describe('the estimated size of a compiled schema', () => {
  it.each(Object.entries(classes))('is not below what it keeps in memory: %s', (name, make) => {
    const count = name === 'one rule' || name === 'a record' ? 60 : 3;
    const inputs = many(count, (k): [string, unknown] => {
      const [schema, value] = make(k + 1);
      return [JSON.stringify(schema), value];
    });
    let estimated = 0;
    const measured = heapOf(() =>
      inputs.map(([text, value]) => {
        const compiled = compileSchema(text);
        for (let i = 0; i < 10; i++) compiled.validate(value);
        estimated += compiled.bytes;
        return compiled;
      }),
    );
    expect(estimated).toBeGreaterThan(measured);
  });
});

describe('the cache of compiled schemas', () => {
  it('returns the compiled schema again, to the same organization', () => {
    const cache = makeSchemaCache(1_000_000);
    const first = cache.compile('a', '{"type":"string"}');
    expect(cache.compile('a', '{"type":"string"}')).toBe(first);
    expect(cache.compile('b', '{"type":"string"}')).not.toBe(first);
  });

  it('keeps the schemas of one organization while another fills it, within its size of real memory', () => {
    const maxBytes = 6 * 1024 * 1024;
    const cache = makeSchemaCache(maxBytes);
    const small = many(10, (i) => JSON.stringify(classes['a record']!(i)[0]));
    const before = small.map((text) => cache.compile('neighbour', text));
    const hostile = Object.values(classes).map((make) => make(0));
    expect(
      heapOf(() => {
        for (const [schema, value] of hostile) cache.compile('hostile', JSON.stringify(schema)).validate(value);
        return cache;
      }),
    ).toBeLessThan(maxBytes);
    const total = hostile.reduce((sum, [schema]) => sum + compileSchema(JSON.stringify(schema)).bytes, 0);
    expect(total).toBeGreaterThan(2 * maxBytes);
    const after: CompiledSchema[] = small.map((text) => cache.compile('neighbour', text));
    expect(after.every((compiled, i) => compiled === before[i])).toBe(true);
  });

  it('keeps nothing of a schema that is rejected', () => {
    const cache = makeSchemaCache(1_000_000);
    for (let i = 0; i < 2; i++) expect(() => cache.compile('a', '{"type":1}')).toThrow('not acceptable');
  });
});
