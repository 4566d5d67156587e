import type { Dialect } from './dialects.ts';

/** What a keyword's subschemas are applied to: the value itself, one part of it, each item, each member, or nothing. */
export type Target = 'value' | 'part' | 'items' | 'members' | 'none';

const TARGETS_SINCE_4: Record<string, Target> = {
  allOf: 'value',
  anyOf: 'value',
  oneOf: 'value',
  not: 'value',
  dependencies: 'value',
  properties: 'part',
  items: 'items',
  additionalItems: 'items',
  patternProperties: 'members',
  additionalProperties: 'members',
  definitions: 'none',
};
const TARGETS_SINCE_6: Record<string, Target> = { ...TARGETS_SINCE_4, contains: 'items', propertyNames: 'members' };
const TARGETS_SINCE_7: Record<string, Target> = { ...TARGETS_SINCE_6, if: 'value', then: 'value', else: 'value' };
const TARGETS_SINCE_2019: Record<string, Target> = {
  ...TARGETS_SINCE_7,
  dependentSchemas: 'value',
  unevaluatedItems: 'items',
  unevaluatedProperties: 'members',
  $defs: 'none',
};
const TARGETS_OF_2020: Record<string, Target> = { ...TARGETS_SINCE_2019, prefixItems: 'part' };
delete TARGETS_OF_2020['additionalItems'];
/** By dialect, the keywords that have subschemas. */
export const TARGETS: Record<Dialect, Record<string, Target>> = {
  'draft-04': TARGETS_SINCE_4,
  'draft-06': TARGETS_SINCE_6,
  'draft-07': TARGETS_SINCE_7,
  '2019-09': TARGETS_SINCE_2019,
  '2020-12': TARGETS_OF_2020,
};
/** Keywords whose subschemas are the members of an object. */
export const MAPS = new Set([
  'properties',
  'patternProperties',
  'dependencies',
  'dependentSchemas',
  '$defs',
  'definitions',
]);
/** A value can conform although a subschema of these keywords fails. */
export const MAY_FAIL = new Set(['anyOf', 'oneOf', 'not', 'if', 'then', 'else', 'contains']);

const PLAIN_SINCE_4 = [
  'type',
  'enum',
  'multipleOf',
  'maximum',
  'exclusiveMaximum',
  'minimum',
  'exclusiveMinimum',
  'maxLength',
  'minLength',
  'pattern',
  'maxItems',
  'minItems',
  'uniqueItems',
  'maxProperties',
  'minProperties',
  'required',
  'format',
];
const PLAIN_SINCE_6 = [...PLAIN_SINCE_4, 'const'];
const PLAIN_SINCE_2019 = [...PLAIN_SINCE_6, 'minContains', 'maxContains', 'dependentRequired'];
/** By dialect, the keywords without subschemas. */
export const PLAIN_KEYWORDS: Record<Dialect, Set<string>> = {
  'draft-04': new Set(PLAIN_SINCE_4),
  'draft-06': new Set(PLAIN_SINCE_6),
  'draft-07': new Set(PLAIN_SINCE_6),
  '2019-09': new Set(PLAIN_SINCE_2019),
  '2020-12': new Set(PLAIN_SINCE_2019),
};

/** Keywords of one of the dialects that have subschemas. */
export const APPLICATORS: readonly string[] = [
  ...new Set(Object.values(TARGETS).flatMap((targets) => Object.keys(targets))),
];
/** Every keyword that has an effect in one of the dialects. */
export const KEYWORDS: readonly string[] = [
  ...new Set([...APPLICATORS, ...Object.values(PLAIN_KEYWORDS).flatMap((keywords) => [...keywords])]),
];
