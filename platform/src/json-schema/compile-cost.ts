import type { Json } from './subschema.ts';

/**
 * Highest estimate for a whole schema. A unit is 11 to 15 µs of generating and loading the code of its validator, and
 * 24 µs in the worst of the schemas that people have.
 */
export const MAX_COMPILE_COST = 3_200;
/** A list of required names of this length or longer becomes a loop in the code, a shorter one a test for each name. */
export const LOOP_REQUIRED = 20;

/**
 * Estimates the bytes of heap that a compiled schema keeps. No measured class of schemas kept more, with both functions
 * (for the first error and for all) compiled and optimized; most keep half of it.
 * @param codeLength characters of the function for the first error
 * @param schemaLength characters of the schema as JSON
 */
export const heapBytesOf = (codeLength: number, schemaLength: number, patternBytes: number): number =>
  24_576 + 14 * codeLength + 12 * schemaLength + patternBytes;

const SUBSCHEMA = 2;
const REFERENCE = 2;
const PATTERN = 5;
/** An assignment for the name of a member, where what a subschema evaluates becomes part of what another one does. */
export const NAME = 0.25;

/**
 * Estimates what it costs to compile one subschema, without the subschemas in it.
 * @param keywords those keywords of its draft that the subschema has
 * @param pointer its JSON pointer, which the code contains once for each possible error
 */
export function compileCostOf(schema: Json, keywords: readonly string[], pointer: string): number {
  let cost = SUBSCHEMA + keywords.length;
  if (Object.hasOwn(schema, '$ref')) cost += REFERENCE;
  if (Object.hasOwn(schema, 'pattern')) cost += PATTERN;
  for (const keyword of keywords) {
    const value = schema[keyword];
    if (keyword === 'required') cost += Math.min((value as string[]).length, LOOP_REQUIRED);
    if (keyword === 'patternProperties') cost += PATTERN * Object.keys(value as Json).length;
    if (keyword === 'dependentRequired' || keyword === 'dependencies') {
      for (const names of Object.values(value as Json))
        if (Array.isArray(names)) cost += 1 + names.length + names.length ** 2 / 20;
    }
  }
  return cost * (1 + pointer.length / 256);
}
