import { escapePointer, segmentsOf } from '../core/json-pointer.ts';
import {
  dialectOfSchema,
  dialectOfUri,
  idKeyword,
  isVocabularyOf,
  metaSchemaDocuments,
  refHidesSiblings,
  type Dialect,
} from './dialects.ts';
import { MAPS, TARGETS } from './keywords.ts';
import { SchemaRejectedError } from './rejected.ts';
import type { Json, Resource, Subschema } from './subschema.ts';

/** Levels of schemas in schemas: each becomes a level of the code that checks a value. */
const MAX_LEVELS = 32;
/** What the URI of a schema without one is relative to. */
const NOWHERE = 'json-schema:///';
/** V8 gives all texts of the same length beyond 16,383 one hash: keys that begin with a URI must stay far below. */
const MAX_URI_LENGTH = 2_000;
const LEADS_OUT =
  'this reference leads out of the schema, and nothing is fetched: put the schema that it names below $defs, with its $id';

export interface References {
  top: Subschema;
  /** By pointer. */
  subs: ReadonlyMap<string, Subschema>;
}

/**
 * Finds all subschemas, and for each reference the one that it leads to (JSON Schema 2020-12, Core, 8.2 and 9.2): by a
 * pointer, also to a place under a keyword that is none of JSON Schema's; by the name of an anchor; by the whole
 * schema's URI, or one in it; or in the meta-schema of its dialect.
 * @param visit is told each subschema before those in it
 * @param requireSchema throws unless the value at a pointer, which no keyword says to be a schema, is one
 * @throws SchemaRejectedError
 */
export function followReferences(
  root: Json,
  dialect: Dialect,
  visit: (sub: Subschema, subs: ReadonlyMap<string, Subschema>) => void,
  requireSchema: (value: Json | boolean, pointer: string) => void,
): References {
  const subs = new Map<string, Subschema>();
  const byValue = new Map<Json, Subschema>();
  const resources = new Map<string, Resource | 'twice'>();
  const anchors = new Map<string, Subschema | 'twice'>();
  const dynamicAnchors = new Map<Subschema, string>();
  const dynamicReferences: { at: string; target: Subschema }[] = [];
  const ID = idKeyword(dialect);
  const top = collectDocument(root, '');
  for (const sub of subs.values()) resolve(sub);
  for (const { at, target } of dynamicReferences) requireOneTarget(at, target);
  return { top, subs };

  function collectDocument(document: Json, pointer: string): Subschema {
    return collect(document, pointer, undefined, 1);
  }

  function collect(schema: Json | boolean, pointer: string, outer: Resource | undefined, level: number): Subschema {
    const known = subs.get(pointer);
    if (known) return known;
    if (level > MAX_LEVELS) throw new SchemaRejectedError('', `schemas are nested in more than ${MAX_LEVELS} levels`);
    const sub = { pointer, schema, children: new Map() } as unknown as Subschema;
    sub.resource = resourceOf(sub, outer);
    subs.set(pointer, sub);
    visit(sub, subs);
    if (typeof schema === 'boolean') return sub;
    byValue.set(schema, sub);
    addAnchors(sub, schema);
    for (const [keyword, target] of Object.entries(TARGETS[dialect])) {
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
        subs: parts.map(([name, part]) => [
          name,
          collect(part, listed ? `${at}/${escapePointer(name)}` : at, sub.resource, level + 1),
        ]),
      });
    }
    return sub;
  }

  /** The resource that the subschema is part of, which is its own if it has a URI. */
  function resourceOf(sub: Subschema, outer: Resource | undefined): Resource {
    const id = typeof sub.schema === 'object' ? sub.schema[ID] : undefined;
    const isHidden = outer && typeof sub.schema === 'object' && hidesSiblings(sub.schema);
    const [uri] = typeof id === 'string' && !isHidden ? splitAtFragment(id) : [''];
    if (outer && uri === '') return outer;
    const absolute = absoluteUri(uri, outer?.uri ?? NOWHERE);
    if (absolute !== undefined && absolute.length > MAX_URI_LENGTH)
      throw new SchemaRejectedError(`${sub.pointer}/${ID}`, `this URI has more than ${MAX_URI_LENGTH} characters`);
    if (outer && absolute === undefined)
      throw new SchemaRejectedError(`${sub.pointer}/${ID}`, `this ${ID} is no URI reference`);
    const resource = { uri: absolute ?? NOWHERE, root: sub };
    resources.set(resource.uri, resources.has(resource.uri) ? 'twice' : resource);
    const { $schema } = sub.schema as Json;
    if (outer && typeof $schema === 'string' && dialectOfSchema($schema) !== dialect)
      throw new SchemaRejectedError(`${sub.pointer}/$schema`, 'must be the $schema of the whole schema');
    return resource;
  }

  function addAnchors({ pointer, resource }: Subschema, schema: Json): void {
    const sub = subs.get(pointer)!;
    const add = (name: string): void => {
      const key = `${resource.uri}#${name}`;
      anchors.set(key, anchors.has(key) && anchors.get(key) !== sub ? 'twice' : sub);
    };
    const text = (keyword: string): string | undefined =>
      typeof schema[keyword] === 'string' ? schema[keyword] : undefined;
    if (dialect.startsWith('draft')) {
      const [, fragment] = splitAtFragment(hidesSiblings(schema) ? '' : (text(ID) ?? ''));
      if (fragment !== '' && !fragment.startsWith('/')) add(fragment);
      return;
    }
    const [anchor, dynamicAnchor] = [text('$anchor'), dialect === '2020-12' ? text('$dynamicAnchor') : undefined];
    if (anchor !== undefined) add(anchor);
    if (dynamicAnchor !== undefined) {
      add(dynamicAnchor);
      dynamicAnchors.set(sub, dynamicAnchor);
    }
    if (dialect === '2019-09' && schema['$recursiveAnchor'] === true && resource.root === sub)
      dynamicAnchors.set(sub, '');
  }

  function hidesSiblings(schema: Json): boolean {
    return refHidesSiblings(dialect) && typeof schema['$ref'] === 'string';
  }

  function resolve(sub: Subschema): void {
    if (typeof sub.schema === 'boolean') return;
    const { $ref } = sub.schema;
    const dynamicKeyword = DYNAMIC_REFERENCE[dialect];
    const dynamicRef = dynamicKeyword && sub.schema[dynamicKeyword];
    if (typeof $ref === 'string') sub.ref = targetOf(sub, $ref, `${sub.pointer}/$ref`);
    if (typeof dynamicRef !== 'string') return;
    const at = `${sub.pointer}/${dynamicKeyword}`;
    if (sub.ref) throw new SchemaRejectedError(at, `$ref and ${dynamicKeyword} cannot be combined`);
    sub.ref = targetOf(sub, dynamicRef, at);
    const [, fragment] = splitAtFragment(dynamicRef);
    if (dynamicAnchors.get(sub.ref) === decode(fragment, at)) dynamicReferences.push({ at, target: sub.ref });
  }

  /** Where several schemas have the anchor, the one that counts depends on the way to the reference. */
  function requireOneTarget(at: string, target: Subschema): void {
    const name = dynamicAnchors.get(target);
    if ([...dynamicAnchors.values()].filter((other) => other === name).length > 1)
      throw new SchemaRejectedError(at, 'is not supported where several schemas have its anchor');
  }

  function targetOf(sub: Subschema, ref: string, at: string): Subschema {
    const [uri, encoded] = splitAtFragment(ref);
    const fragment = decode(encoded, at);
    const resource = uri === '' ? sub.resource : named(uri, sub.resource, at);
    const target =
      fragment === ''
        ? resource.root
        : fragment.startsWith('/')
          ? placeOf(resource, fragment)
          : anchors.get(`${resource.uri}#${fragment}`);
    if (target === 'twice') throw new SchemaRejectedError(at, 'this name is that of several subschemas');
    if (!target) throw new SchemaRejectedError(at, 'this reference does not lead to a subschema');
    return target;
  }

  function named(uri: string, { uri: base }: Resource, at: string): Resource {
    const absolute = absoluteUri(uri, base);
    if (absolute === undefined) throw new SchemaRejectedError(at, LEADS_OUT);
    const known = resources.get(absolute);
    if (known === 'twice') throw new SchemaRejectedError(at, 'this URI is that of several subschemas');
    if (known) return known;
    const other = dialectOfUri(absolute);
    if (other !== undefined && other !== dialect)
      throw new SchemaRejectedError(
        at,
        `this reference leads to the meta-schema of ${other}, but the schema is of ${dialect}`,
      );
    if (other === undefined && !isVocabularyOf(dialect, absolute)) throw new SchemaRejectedError(at, LEADS_OUT);
    const [whole] = metaSchemaDocuments(dialect).map((document, i) => collectDocument(document, `meta-schema-${i}`));
    const part = other === undefined ? resources.get(absolute) : whole!.resource;
    if (!part || part === 'twice') throw new SchemaRejectedError(at, LEADS_OUT);
    return part;
  }

  /** The subschema at a pointer; one that no keyword says to be a schema becomes one, unless it is in data. */
  function placeOf({ root }: Resource, fragment: string): Subschema | undefined {
    let value: unknown = root.schema;
    let resource = root.resource;
    const names = segmentsOf(fragment);
    for (const name of names) {
      if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
      value = (value as Json)[name];
      resource = byValue.get(value as Json)?.resource ?? resource;
    }
    const pointer = `${root.pointer}/${names.map(escapePointer).join('/')}`;
    const known = subs.get(pointer);
    if (known) return known;
    if (typeof value !== 'boolean' && (typeof value !== 'object' || value === null || Array.isArray(value)))
      return undefined;
    requireSchema(value as Json | boolean, pointer);
    return collect(value as Json | boolean, pointer, resource, 1);
  }
}

/** References whose target may depend on the way that leads to them. */
const DYNAMIC_REFERENCE: Partial<Record<Dialect, string>> = { '2019-09': '$recursiveRef', '2020-12': '$dynamicRef' };

function splitAtFragment(uri: string): [uri: string, fragment: string] {
  const hash = uri.indexOf('#');
  return hash < 0 ? [uri, ''] : [uri.slice(0, hash), uri.slice(hash + 1)];
}

/** Undefined for what is no URI reference. What is relative to a URN takes its scheme (RFC 3986, 5.2.3). */
function absoluteUri(uri: string, base: string): string | undefined {
  const isRelative = !/^[a-z][a-z0-9+.-]*:/i.test(uri);
  const scheme = base.slice(0, base.indexOf(':') + 1);
  return (URL.parse(uri, base) ?? (isRelative ? URL.parse(scheme + uri) : undefined))?.href;
}

function decode(fragment: string, at: string): string {
  try {
    return decodeURIComponent(fragment);
  } catch {
    throw new SchemaRejectedError(at, 'this reference is not a well-formed URI fragment');
  }
}
