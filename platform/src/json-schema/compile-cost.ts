type Json = Record<string, unknown>;

/** Weight of a whole schema: a unit is about 20 µs of making and loading its code. */
export const MAX_WEIGHT = 2_400;
/** A list of required names from this length on is a loop in the code, not a test for each. */
export const LOOP_REQUIRED = 20;

const SUBSCHEMA = 2;
const REFERENCE = 2;
const PATTERN = 5;

/**
 * What the code of a subschema weighs, that of its children apart.
 * @param keywords those of its draft that it has
 * @param pointer where it is: each error in the code carries it
 */
export function weightOf(schema: Json, keywords: readonly string[], pointer: string): number {
  let weight = SUBSCHEMA + keywords.length;
  if (Object.hasOwn(schema, '$ref')) weight += REFERENCE;
  if (Object.hasOwn(schema, 'pattern')) weight += PATTERN;
  for (const keyword of keywords) {
    const value = schema[keyword];
    if (keyword === 'required') weight += Math.min((value as string[]).length, LOOP_REQUIRED);
    if (keyword === 'patternProperties') weight += PATTERN * Object.keys(value as Json).length;
    if (keyword === 'dependentRequired' || keyword === 'dependencies') {
      for (const names of Object.values(value as Json))
        if (Array.isArray(names)) weight += 1 + names.length + names.length ** 2 / 20;
    }
  }
  return weight * (1 + pointer.length / 256);
}
