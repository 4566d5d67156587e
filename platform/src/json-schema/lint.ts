import { COST, type Cost, type Draft } from './compiler.ts';
import type { Patterns } from './patterns.ts';
import { MAX_WEIGHT, weightOf } from './weight.ts';

const MAX_SUBSCHEMAS = 1_000;
const MAX_ENUM = 1_000;
/** Members of an allOf, anyOf or oneOf, and entries of a dependentRequired: ajv nests their code. */
const MAX_BRANCHES = 250;
/** Visits that one value may cost by references alone, before any of its items or members is looked at. */
const MAX_VISITS = 5_000;

type Json = Record<string, unknown>;
/** What a keyword's subschemas are applied to: the value itself, one part of it, each of its items, each of its members, nothing. */
type Reach = 'value' | 'part' | 'items' | 'members' | 'none';
const EVERY: Record<string, Reach> = {
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
const REACH: Record<Draft, Record<string, Reach>> = {
  '2020-12': {
    ...EVERY,
    prefixItems: 'part',
    dependentSchemas: 'value',
    unevaluatedItems: 'items',
    unevaluatedProperties: 'members',
  },
  'draft-07': { ...EVERY, additionalItems: 'items' },
};
const MAPS = new Set(['properties', 'patternProperties', 'dependencies', 'dependentSchemas', '$defs', 'definitions']);
const FORGIVING = new Set(['anyOf', 'oneOf', 'not', 'if', 'then', 'else', 'contains']);
const EVERY_PLAIN = [
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
const PLAIN: Record<Draft, Set<string>> = {
  '2020-12': new Set([...EVERY_PLAIN, 'minContains', 'maxContains', 'dependentRequired']),
  'draft-07': new Set(EVERY_PLAIN),
};

/** Why a schema is refused, and where in it. */
export class UnsoundError extends Error {
  override readonly name = 'UnsoundError';
  readonly pointer: string;
  constructor(pointer: string, message: string) {
    super(message);
    this.pointer = pointer;
  }
}

interface Sub {
  pointer: string;
  schema: Json | boolean;
  /** Subschemas by keyword: in a list, under names, or alone. */
  children: Map<string, { reach: Reach; subs: [name: string, sub: Sub][] }>;
  ref?: Sub;
  /** Number of its place under $defs in the copy, where references lead to it. */
  place?: number;
  /** Visits of one value; undefined while it is being counted. */
  visits?: number;
}

/**
 * Checks what a meta-schema cannot (references, patterns, cost) and gives a copy with only the draft's keywords, each referenced subschema
 * once under `$defs`, and the cost of a visit in each subschema.
 * @throws UnsoundError
 */
export function lintSchema(root: Json, draft: Draft, patterns: Patterns): Json {
  const subs = new Map<string, Sub>();
  const anchors = new Map<string, Sub>();
  let weight = 0;
  const top = collect(root, '');
  for (const sub of subs.values()) resolve(sub);
  const visited = new Set<Sub>();
  for (const sub of subs.values()) countVisits(sub, visited);
  const targets = [...new Set([...subs.values()].flatMap((sub) => (sub.ref ? [sub.ref] : [])))];
  targets.forEach((sub, place) => (sub.place = place));
  return {
    ...(placed(top, true) as Json),
    $defs: Object.fromEntries(targets.map((sub, place) => [String(place), copy(sub, false)])),
  };

  function collect(schema: Json | boolean, pointer: string): Sub {
    const sub: Sub = { pointer, schema, children: new Map() };
    subs.set(pointer, sub);
    if (subs.size > MAX_SUBSCHEMAS)
      throw new UnsoundError(pointer, `the schema has more than ${MAX_SUBSCHEMAS} subschemas`);
    if (typeof schema === 'boolean') return sub;
    checkKeywords(sub, schema);
    const keywords = [...PLAIN[draft], ...Object.keys(REACH[draft])].filter((keyword) =>
      Object.hasOwn(schema, keyword),
    );
    weight += weightOf(schema, keywords, pointer);
    if (weight > MAX_WEIGHT)
      throw new UnsoundError(
        pointer,
        `the schema has too many rules: subschemas, keywords, patterns and required names together weigh more than ${MAX_WEIGHT}`,
      );
    for (const [keyword, reach] of Object.entries(REACH[draft])) {
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
        reach: Array.isArray(value) && reach === 'items' ? 'part' : reach,
        subs: parts.map(([name, part]) => [name, collect(part, listed ? `${at}/${escape(name)}` : at)]),
      });
    }
    return sub;
  }

  function checkKeywords({ pointer }: Sub, schema: Json): void {
    if (pointer !== '' && Object.hasOwn(schema, '$id'))
      throw new UnsoundError(`${pointer}/$id`, 'only the whole schema can have an $id');
    for (const keyword of ['$dynamicRef', '$dynamicAnchor', '$recursiveRef', '$recursiveAnchor']) {
      if (Object.hasOwn(schema, keyword))
        throw new UnsoundError(`${pointer}/${keyword}`, `${keyword} is not supported`);
    }
    if (Array.isArray(schema['enum']) && schema['enum'].length > MAX_ENUM)
      throw new UnsoundError(`${pointer}/enum`, `an enum has more than ${MAX_ENUM} values`);
    for (const keyword of ['allOf', 'anyOf', 'oneOf', 'dependencies', 'dependentRequired']) {
      if (Object.hasOwn(schema, keyword) && Object.keys(schema[keyword] as object).length > MAX_BRANCHES)
        throw new UnsoundError(`${pointer}/${keyword}`, `has more than ${MAX_BRANCHES} entries`);
    }
    if (typeof schema['pattern'] === 'string') checkPattern(schema['pattern'], `${pointer}/pattern`);
    for (const source of Object.keys((schema['patternProperties'] as Json | undefined) ?? {}))
      checkPattern(source, `${pointer}/patternProperties/${escape(source)}`);
    const anchor = schema['$anchor'];
    if (typeof anchor !== 'string' || draft === 'draft-07') return;
    if (anchors.has(anchor)) throw new UnsoundError(`${pointer}/$anchor`, 'this $anchor occurs twice');
    anchors.set(anchor, subs.get(pointer)!);
  }

  function checkPattern(source: string, pointer: string): void {
    try {
      patterns(source);
    } catch (error) {
      throw new UnsoundError(pointer, (error as Error).message);
    }
  }

  function resolve(sub: Sub): void {
    const ref = typeof sub.schema === 'object' ? sub.schema['$ref'] : undefined;
    if (typeof ref !== 'string') return;
    const at = `${sub.pointer}/$ref`;
    if (!ref.startsWith('#')) throw new UnsoundError(at, 'a $ref can only lead into the same schema ("#...")');
    const fragment = decode(ref.slice(1), at);
    const target = fragment === '' || fragment.startsWith('/') ? subs.get(fragment) : anchors.get(fragment);
    if (!target) throw new UnsoundError(at, 'this $ref does not lead to a subschema');
    sub.ref = target;
  }

  /** Draft-07 ignores what stands beside a $ref. */
  function appliedChildren(sub: Sub): Sub['children'] {
    return sub.ref && draft === 'draft-07' ? new Map() : sub.children;
  }

  function countVisits(sub: Sub, open: Set<Sub>): number {
    if (sub.visits !== undefined) return sub.visits;
    if (open.has(sub))
      throw new UnsoundError(sub.pointer, 'references loop here without consuming anything of the value');
    open.add(sub);
    let visits = 1;
    if (sub.ref) visits += countVisits(sub.ref, open);
    for (const { reach, subs: children } of appliedChildren(sub).values()) {
      if (reach === 'value') for (const [, child] of children) visits += countVisits(child, open);
    }
    if (visits > MAX_VISITS)
      throw new UnsoundError(sub.pointer, `references make one value be checked more than ${MAX_VISITS} times`);
    open.delete(sub);
    return (sub.visits = visits);
  }

  function copy(sub: Sub, definite: boolean): Json | boolean {
    if (typeof sub.schema === 'boolean') return sub.schema;
    const cost: Cost = { units: 0, perItem: 0, perKey: 0, definite };
    const out: [string, unknown][] = [];
    if (sub.ref) {
      cost.units++;
      out.push(['$ref', `#/$defs/${sub.ref.place}`]);
    }
    if (!sub.ref || draft !== 'draft-07') {
      for (const keyword of PLAIN[draft]) {
        if (!Object.hasOwn(sub.schema, keyword)) continue;
        const value = sub.schema[keyword];
        out.push([keyword, value]);
        cost.units +=
          keyword !== 'enum' && Array.isArray(value)
            ? value.length
            : keyword === 'dependentRequired'
              ? sizeOfLists(value as Json)
              : 1;
        if (keyword === 'minProperties' || keyword === 'maxProperties') cost.perKey++;
      }
    }
    for (const [keyword, { reach, subs: children }] of appliedChildren(sub)) {
      if (reach === 'none') continue;
      cost.units += children.length;
      if (reach === 'items') cost.perItem += children.length;
      // What is unevaluated is known only after a look at every member's name.
      if (reach === 'members') cost.perKey += children.length * (keyword === 'unevaluatedProperties' ? 4 : 1);
      const copies = children.map(
        ([name, child]) => [name, placed(child, definite && !FORGIVING.has(keyword))] as const,
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
    if (cost.units > 0) out.push([COST, cost]);
    return Object.fromEntries(out);
  }

  function placed(sub: Sub, definite: boolean): Json | boolean {
    return sub.place === undefined
      ? copy(sub, definite)
      : { $ref: `#/$defs/${sub.place}`, [COST]: { units: 1, perItem: 0, perKey: 0, definite } };
  }
}

const escape = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1');
const sizeOfLists = (lists: Json): number =>
  Object.values(lists).reduce((sum: number, list) => sum + 1 + (list as unknown[]).length, 0);

function decode(fragment: string, at: string): string {
  try {
    return decodeURIComponent(fragment);
  } catch {
    throw new UnsoundError(at, 'this $ref is not a well-formed URI fragment');
  }
}
