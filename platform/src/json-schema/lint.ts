import { escapePointer } from '../core/json-pointer.ts';
import { CHECK_COST, type CheckCost } from './compiler.ts';
import { compileCostOf, MAX_COMPILE_COST, NAME } from './compile-cost.ts';
import { definitionsInOrder } from './compile-order.ts';
import { refHidesSiblings, type Dialect } from './dialects.ts';
import { MAPS, MAY_FAIL, PLAIN_KEYWORDS, TARGETS } from './keywords.ts';
import { mergedNames, NO_NAMES } from './merged-names.ts';
import type { Patterns } from './patterns.ts';
import { followReferences } from './references.ts';
import { SchemaRejectedError } from './rejected.ts';
import { inAjvsTerms } from './ajvs-terms.ts';
import type { Json, Subschema } from './subschema.ts';

const MAX_SUBSCHEMAS = 1_000;
const MAX_ENUM = 5_000;
/** Members of an allOf, anyOf or oneOf, and entries of a dependentRequired: ajv nests their code. */
const MAX_BRANCHES = 250;
/** How often subschemas may be applied to one value, not counting those for its items and members. */
const MAX_APPLICATIONS = 5_000;

export interface Lint {
  dialect: Dialect;
  patterns: Patterns;
  /** Throws unless the value at a pointer, which no keyword says to be a schema, is one. */
  requireSchema: (value: Json | boolean, pointer: string) => void;
  /** Pointers to subschemas: a list is checked, each item by one of them. Without them, `root` checks a value. */
  places?: readonly string[] | undefined;
}

/**
 * Checks what a meta-schema cannot (references, patterns, cost). Returns a copy with the keywords of the dialect only,
 * in the terms of ajv's draft-07 or 2020-12; each referenced subschema is once under `$defs`, and the check cost in
 * each subschema. `definitions`: those that are used, in the order in which they are compiled. `collects`: something is
 * said of what is unevaluated.
 * @throws SchemaRejectedError
 */
export function lintSchema(
  root: Json,
  { dialect, patterns, requireSchema, places }: Lint,
): { linted: Json; definitions: readonly number[]; collects: boolean } {
  let compileCost = 0;
  const { top, subs } = followReferences(root, dialect, checkSubschema, requireSchema);
  const open = new Set<Subschema>();
  for (const sub of subs.values()) countApplications(sub, open);
  const containing = new Map<Subschema, boolean>();
  if (dialect === '2020-12') for (const sub of subs.values()) refuseContains(sub);
  const collects = [...subs.values()].some(({ children }) =>
    ['unevaluatedProperties', 'unevaluatedItems'].some((keyword) => children.has(keyword)),
  );
  const mergesOf = collects ? mergedNames(subs.values(), appliedInPlace) : () => NO_NAMES;
  for (const sub of subs.values()) charge(mergesOf(sub).listed * NAME, sub.pointer);
  const referenced = [...new Set([...subs.values()].flatMap((sub) => (sub.ref ? [sub.ref] : [])))];
  referenced.forEach((sub, definition) => (sub.definition = definition));
  const checked = places
    ? {
        [refHidesSiblings(dialect) ? 'items' : 'prefixItems']: places.map((at) => referenceOrCopy(subs.get(at)!, true)),
      }
    : (referenceOrCopy(top, true) as Json);
  const $defs = Object.fromEntries(referenced.map((sub, definition) => [String(definition), copy(sub, false)]));
  const definitions = definitionsInOrder(places ? places.map((at) => subs.get(at)!) : [top], (sub) => [
    ...[...appliedChildren(sub).values()].flatMap(({ target, subs: parts }) =>
      target === 'none' ? [] : parts.map(([, part]) => part),
    ),
    ...(sub.ref ? [sub.ref] : []),
  ]);
  return { linted: { ...checked, $defs }, definitions, collects };

  function checkSubschema({ pointer, schema }: Subschema, { size }: ReadonlyMap<string, Subschema>): void {
    if (size > MAX_SUBSCHEMAS)
      throw new SchemaRejectedError(pointer, `the schema has more than ${MAX_SUBSCHEMAS} subschemas`);
    if (typeof schema === 'boolean') return charge(Math.floor(pointer.length / 256), pointer);
    checkKeywords(pointer, schema);
    const keywords = [...PLAIN_KEYWORDS[dialect], ...Object.keys(TARGETS[dialect])].filter((keyword) =>
      Object.hasOwn(schema, keyword),
    );
    charge(compileCostOf(schema, keywords, pointer), pointer);
  }

  function charge(cost: number, pointer: string): void {
    compileCost += cost;
    if (compileCost > MAX_COMPILE_COST)
      throw new SchemaRejectedError(
        pointer,
        'the schema has too many rules: subschemas, keywords, patterns and required names ' +
          `together weigh more than ${MAX_COMPILE_COST}`,
      );
  }

  function checkKeywords(pointer: string, schema: Json): void {
    for (const keyword of ['properties', 'dependencies', 'dependentSchemas', 'dependentRequired']) {
      if (Object.hasOwn((schema[keyword] as Json | undefined) ?? {}, '__proto__'))
        throw new SchemaRejectedError(`${pointer}/${keyword}`, 'a rule for a member named __proto__ cannot be checked');
    }
    if (Array.isArray(schema['enum']) && schema['enum'].length > MAX_ENUM)
      throw new SchemaRejectedError(`${pointer}/enum`, `an enum has more than ${MAX_ENUM} values`);
    for (const keyword of ['allOf', 'anyOf', 'oneOf', 'dependencies', 'dependentRequired']) {
      if (Object.hasOwn(schema, keyword) && Object.keys(schema[keyword] as object).length > MAX_BRANCHES)
        throw new SchemaRejectedError(`${pointer}/${keyword}`, `has more than ${MAX_BRANCHES} entries`);
    }
    if (typeof schema['pattern'] === 'string') checkPattern(schema['pattern'], `${pointer}/pattern`);
    for (const source of Object.keys((schema['patternProperties'] as Json | undefined) ?? {}))
      checkPattern(source, `${pointer}/patternProperties/${escapePointer(source)}`);
  }

  function checkPattern(source: string, pointer: string): void {
    try {
      patterns.compile(source);
    } catch (error) {
      throw new SchemaRejectedError(pointer, (error as Error).message);
    }
  }

  function appliedChildren(sub: Subschema): Subschema['children'] {
    return sub.ref && refHidesSiblings(dialect) ? new Map() : sub.children;
  }

  /** @param open the subschemas whose count is in progress: a reference to one of them is a loop */
  function countApplications(sub: Subschema, open: Set<Subschema>): number {
    if (sub.applications !== undefined) return sub.applications;
    if (open.has(sub))
      throw new SchemaRejectedError(sub.pointer, 'references loop here without consuming anything of the value');
    open.add(sub);
    let applications = 1;
    for (const applied of appliedInPlace(sub)) applications += countApplications(applied, open);
    if (applications > MAX_APPLICATIONS)
      throw new SchemaRejectedError(
        sub.pointer,
        `references make one value be checked more than ${MAX_APPLICATIONS} times`,
      );
    open.delete(sub);
    return (sub.applications = applications);
  }

  /** The subschemas that are applied to the same value as this one, by a reference or a keyword. */
  function appliedInPlace(sub: Subschema): Subschema[] {
    const ofKeywords = [...appliedChildren(sub).values()].filter(({ target }) => target === 'value');
    return [...(sub.ref ? [sub.ref] : []), ...ofKeywords.flatMap(({ subs: parts }) => parts.map(([, part]) => part))];
  }

  /** ajv does not know which items a `contains` evaluates; before 2020-12 it evaluates none. */
  function refuseContains(sub: Subschema): void {
    if (sub.children.has('unevaluatedItems') && appliesContains(sub))
      throw new SchemaRejectedError(
        `${sub.pointer}/unevaluatedItems`,
        'contains and unevaluatedItems cannot be combined',
      );
  }

  function appliesContains(sub: Subschema): boolean {
    let applies = containing.get(sub);
    if (applies === undefined) {
      applies = sub.children.has('contains') || appliedInPlace(sub).some(appliesContains);
      containing.set(sub, applies);
    }
    return applies;
  }

  function copy(sub: Subschema, definite: boolean): Json | boolean {
    if (typeof sub.schema === 'boolean') return sub.schema;
    const { listed, ofValue } = mergesOf(sub);
    const cost: CheckCost = { units: listed / 2, perItem: 0, perKey: ofValue, definite };
    const out: [string, unknown][] = [];
    if (sub.ref) {
      cost.units++;
      out.push(['$ref', `#/$defs/${sub.ref.definition}`]);
    }
    if (!sub.ref || !refHidesSiblings(dialect)) {
      for (const keyword of PLAIN_KEYWORDS[dialect]) {
        if (!Object.hasOwn(sub.schema, keyword)) continue;
        const value = sub.schema[keyword];
        out.push([keyword, value]);
        cost.units +=
          keyword !== 'enum' && Array.isArray(value)
            ? value.length
            : keyword === 'dependentRequired'
              ? sizeOfLists(value as Json)
              : 1;
      }
    }
    for (const [keyword, { target, subs: children }] of appliedChildren(sub)) {
      if (target === 'none') continue;
      cost.units += children.length;
      if (target === 'items') cost.perItem += children.length;
      // To find the unevaluated members the code compares the names of all members.
      if (target === 'members') cost.perKey += children.length * (keyword === 'unevaluatedProperties' ? 4 : 1);
      const copies = children.map(
        ([name, child]) => [name, referenceOrCopy(child, definite && !MAY_FAIL.has(keyword))] as const,
      );
      const original = sub.schema[keyword];
      if (Array.isArray(original)) out.push([keyword, copies.map(([, child]) => child)]);
      else if (!MAPS.has(keyword)) out.push([keyword, copies[0]![1]]);
      else {
        const lists = Object.entries(original as Json).filter(([, part]) => Array.isArray(part));
        cost.units += sizeOfLists(Object.fromEntries(lists));
        out.push([keyword, Object.fromEntries([...copies, ...lists])]);
      }
    }
    if (cost.units > 0) out.push([CHECK_COST, cost]);
    return inAjvsTerms(dialect, Object.fromEntries(out));
  }

  function referenceOrCopy(sub: Subschema, definite: boolean): Json | boolean {
    return sub.definition === undefined
      ? copy(sub, definite)
      : { $ref: `#/$defs/${sub.definition}`, [CHECK_COST]: { units: 1, perItem: 0, perKey: 0, definite } };
  }
}

/** Number of lists and of the names in them. */
const sizeOfLists = (lists: Json): number =>
  Object.values(lists).reduce((sum: number, list) => sum + 1 + (list as unknown[]).length, 0);
