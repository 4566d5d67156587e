import type { Draft } from './compiler.ts';

/** What a keyword's subschemas are applied to: the value itself, one part of it, each item, each member, or nothing. */
export type Target = 'value' | 'part' | 'items' | 'members' | 'none';
const TARGETS_IN_BOTH_DRAFTS: Record<string, Target> = {
  allOf: 'value',
  anyOf: 'value',
  oneOf: 'value',
  not: 'value',
  if: 'value',
  then: 'value',
  else: 'value',
  dependencies: 'value',
  properties: 'part',
  items: 'items',
  contains: 'items',
  patternProperties: 'members',
  additionalProperties: 'members',
  propertyNames: 'members',
  $defs: 'none',
  definitions: 'none',
};
export const TARGETS: Record<Draft, Record<string, Target>> = {
  '2020-12': {
    ...TARGETS_IN_BOTH_DRAFTS,
    prefixItems: 'part',
    dependentSchemas: 'value',
    unevaluatedItems: 'items',
    unevaluatedProperties: 'members',
  },
  'draft-07': { ...TARGETS_IN_BOTH_DRAFTS, additionalItems: 'items' },
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
/** Keywords without subschemas. */
const PLAIN_IN_BOTH_DRAFTS = [
  'type',
  'const',
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
export const PLAIN_KEYWORDS: Record<Draft, Set<string>> = {
  '2020-12': new Set([...PLAIN_IN_BOTH_DRAFTS, 'minContains', 'maxContains', 'dependentRequired']),
  'draft-07': new Set(PLAIN_IN_BOTH_DRAFTS),
};

/** Keywords of one of the drafts that have subschemas. */
export const APPLICATORS: readonly string[] = Object.values(TARGETS).flatMap((targets) => Object.keys(targets));
/** Every keyword that has an effect in one of the drafts. */
export const KEYWORDS: readonly string[] = [
  ...APPLICATORS,
  ...Object.values(PLAIN_KEYWORDS).flatMap((keywords) => [...keywords]),
];
