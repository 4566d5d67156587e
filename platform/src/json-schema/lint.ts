import { escapePointer } from '../core/json-pointer.ts';
import { CHECK_COST, type CheckCost, type Draft } from './compiler.ts';
import { compileCostOf, MAX_COMPILE_COST, NAME } from './compile-cost.ts';
import { MAPS, MAY_FAIL, PLAIN_KEYWORDS, TARGETS } from './keywords.ts';
import { mergedNames, NO_NAMES } from './merged-names.ts';
import type { Patterns } from './patterns.ts';
import type { Json, Subschema } from './subschema.ts';

const MAX_SUBSCHEMAS = 1_000;
const MAX_ENUM = 1_000;
/** Members of an allOf, anyOf or oneOf, and entries of a dependentRequired: ajv nests their code. */
const MAX_BRANCHES = 250;
/** How often subschemas may be applied to one value, not counting those for its items and members. */
const MAX_APPLICATIONS = 5_000;

/** A schema is not acceptable. `pointer` is the JSON pointer of the place in it. */
export class SchemaRejectedError extends Error {
  override readonly name = 'SchemaRejectedError';
  readonly pointer: string;
  constructor(pointer: string, message: string) {
    super(message);
    this.pointer = pointer;
  }
}

/**
 * Checks what a meta-schema cannot (references, patterns, cost). Returns a copy with the keywords of the draft only,
 * each referenced subschema once under `$defs`, and the check cost in each subschema. `collects`: something is said of
 * what is unevaluated.
 * @throws SchemaRejectedError
 */
export function lintSchema(root: Json, draft: Draft, patterns: Patterns): { linted: Json; collects: boolean } {
  const subs = new Map<string, Subschema>();
  const anchors = new Map<string, Subschema>();
  let compileCost = 0;
  const top = collect(root, '');
  for (const sub of subs.values()) resolve(sub);
  const open = new Set<Subschema>();
  for (const sub of subs.values()) countApplications(sub, open);
  for (const sub of subs.values()) refuseContains(sub);
  const collects = [...subs.values()].some(({ children }) =>
    ['unevaluatedProperties', 'unevaluatedItems'].some((keyword) => children.has(keyword)),
  );
  const mergesOf = collects ? mergedNames(subs.values(), appliedInPlace) : () => NO_NAMES;
  for (const sub of subs.values()) charge(mergesOf(sub).listed * NAME, sub.pointer);
  const referenced = [...new Set([...subs.values()].flatMap((sub) => (sub.ref ? [sub.ref] : [])))];
  referenced.forEach((sub, definition) => (sub.definition = definition));
  const linted = {
    ...(referenceOrCopy(top, true) as Json),
    $defs: Object.fromEntries(referenced.map((sub, definition) => [String(definition), copy(sub, false)])),
  };
  return { linted, collects };

  function collect(schema: Json | boolean, pointer: string): Subschema {
    const sub: Subschema = { pointer, schema, children: new Map() };
    subs.set(pointer, sub);
    if (subs.size > MAX_SUBSCHEMAS)
      throw new SchemaRejectedError(pointer, `the schema has more than ${MAX_SUBSCHEMAS} subschemas`);
    if (typeof schema === 'boolean') return sub;
    checkKeywords(sub, schema);
    const keywords = [...PLAIN_KEYWORDS[draft], ...Object.keys(TARGETS[draft])].filter((keyword) =>
      Object.hasOwn(schema, keyword),
    );
    charge(compileCostOf(schema, keywords, pointer), pointer);
    for (const [keyword, target] of Object.entries(TARGETS[draft])) {
      if (!Object.hasOwn(schema, keyword)) continue;
      const value = schema[keyword] as Json | boolean | (Json | boolean)[];
      const at = `${pointer}/${keyword}`;
      const parts: [string, Json | boolean][] = Array.isArray(value)
        ? value.map((part, i) => [String(i), part])
        : MAPS.has(keyword)
          ? (Object.entries(value as Json).filter(([, part]) => !Array.isArray(part)) as [string, Json | boolean][])
          : [['', value]];
      const listed = Array.isArray(value) || MAPS.has(keyword);
      sub.children.set(keyword, {
        target: Array.isArray(value) && target === 'items' ? 'part' : target,
        subs: parts.map(([name, part]) => [name, collect(part, listed ? `${at}/${escapePointer(name)}` : at)]),
      });
    }
    return sub;
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

  function checkKeywords({ pointer }: Subschema, schema: Json): void {
    if (pointer !== '' && Object.hasOwn(schema, '$id'))
      throw new SchemaRejectedError(`${pointer}/$id`, 'only the whole schema can have an $id');
    for (const keyword of ['$dynamicRef', '$dynamicAnchor', '$recursiveRef', '$recursiveAnchor']) {
      if (Object.hasOwn(schema, keyword))
        throw new SchemaRejectedError(`${pointer}/${keyword}`, `${keyword} is not supported`);
    }
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
    const anchor = schema['$anchor'];
    if (typeof anchor !== 'string' || draft === 'draft-07') return;
    if (anchors.has(anchor)) throw new SchemaRejectedError(`${pointer}/$anchor`, 'this $anchor occurs twice');
    anchors.set(anchor, subs.get(pointer)!);
  }

  function checkPattern(source: string, pointer: string): void {
    try {
      patterns.compile(source);
    } catch (error) {
      throw new SchemaRejectedError(pointer, (error as Error).message);
    }
  }

  function resolve(sub: Subschema): void {
    const ref = typeof sub.schema === 'object' ? sub.schema['$ref'] : undefined;
    if (typeof ref !== 'string') return;
    const at = `${sub.pointer}/$ref`;
    if (!ref.startsWith('#')) throw new SchemaRejectedError(at, 'a $ref can only lead into the same schema ("#...")');
    const fragment = decode(ref.slice(1), at);
    const target = fragment === '' || fragment.startsWith('/') ? subs.get(fragment) : anchors.get(fragment);
    if (!target) throw new SchemaRejectedError(at, 'this $ref does not lead to a subschema');
    sub.ref = target;
  }

  /** Draft-07 ignores the other keywords beside a $ref. */
  function appliedChildren(sub: Subschema): Subschema['children'] {
    return sub.ref && draft === 'draft-07' ? new Map() : sub.children;
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

  /** ajv does not know which items a `contains` evaluates. */
  function refuseContains(sub: Subschema): void {
    if (!sub.children.has('unevaluatedItems')) return;
    const applied = new Set([sub]);
    for (const one of applied) {
      if (one.children.has('contains'))
        throw new SchemaRejectedError(
          `${sub.pointer}/unevaluatedItems`,
          'contains and unevaluatedItems cannot be combined',
        );
      for (const part of appliedInPlace(one)) applied.add(part);
    }
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
    if (!sub.ref || draft !== 'draft-07') {
      for (const keyword of PLAIN_KEYWORDS[draft]) {
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
    return Object.fromEntries(out);
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

function decode(fragment: string, at: string): string {
  try {
    return decodeURIComponent(fragment);
  } catch {
    throw new SchemaRejectedError(at, 'this $ref is not a well-formed URI fragment');
  }
}
