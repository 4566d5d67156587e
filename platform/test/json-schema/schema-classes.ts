import { many, object } from './schemas.ts';

const letter = (i: number): string => String.fromCharCode(0x4e00 + 3 * i);
/** Schemas of many kinds, different for each `k`, and a value that breaks each of them. */
export const CLASSES: Record<string, (k: number) => [schema: unknown, value: unknown]> = {
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
