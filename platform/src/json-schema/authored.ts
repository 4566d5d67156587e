import { MAX_DETAILS, ServiceError, type Violation } from '../core/errors.ts';
import { escapePointer } from '../core/json-pointer.ts';
import { formats } from './formats.ts';
import { APPLICATORS, KEYWORDS, MAPS } from './keywords.ts';
import { isTypingError } from './typing-error.ts';
import type { Json } from './subschema.ts';

/** Keywords that refer to a schema, or say what others refer to. */
const REFERENCES = ['$ref', '$dynamicRef', '$recursiveRef'];
const NAMES = ['$id', 'id', '$schema', '$anchor', '$vocabulary', '$dynamicAnchor', '$recursiveAnchor'];
/** Keywords that only tell people something, and two of OpenAPI. */
const ANNOTATIONS = [
  ...['title', 'description', 'default', 'examples', 'example', 'deprecated', 'readOnly', 'writeOnly', 'nullable'],
  ...['$comment', 'contentEncoding', 'contentMediaType', 'contentSchema'],
];
/** Whatever is here alone, no value is checked by it. */
const WITHOUT_EFFECT = new Set(['$defs', 'definitions', ...NAMES, ...ANNOTATIONS]);
const WITH_EFFECT = new Set([...KEYWORDS, ...REFERENCES].filter((keyword) => !WITHOUT_EFFECT.has(keyword)));
const KNOWN = new Set([...WITH_EFFECT, ...WITHOUT_EFFECT]);
/** Formats of JSON Schema itself; OpenAPI and generators know many more, which are near to these and to each other. */
const FORMATS = new Set([
  ...['date', 'time', 'date-time', 'duration', 'email', 'idn-email', 'hostname', 'idn-hostname', 'ipv4', 'ipv6'],
  ...['uri', 'uri-reference', 'iri', 'iri-reference', 'uri-template', 'uuid'],
  ...['json-pointer', 'relative-json-pointer', 'regex'],
]);
/** Formats of generators that are a letter away from one of JSON Schema. */
const NEAR_UUID = new Set(['ulid', 'uid']);
/** Each costs some comparisons; the rest of a schema with more unknown keywords is not looked at. */
const MAX_UNKNOWN = 500;

/**
 * Refuses a schema that its author did not mean, because it would check nothing without a word: a document of another
 * kind; an empty enum; a keyword or format with a typing error. Other unknown ones are annotations. What is stored
 * already is not asked. Takes time linear in the schema: call it through the fair scheduler.
 * @param schema any object; whether it is sound is asked after this
 * @param path JSON pointer of the schema in the request
 * @throws ServiceError INVALID_SCHEMA
 */
export function requireMeant(schema: Json, path: string): void {
  const what = otherKindOf(schema);
  const details = what === undefined ? mistypedIn(schema, path) : [{ path, message: what }];
  if (details.length > 0) throw new ServiceError('INVALID_SCHEMA', undefined, { details });
}

/** What a document looks like that has members, none of which says anything about a value. */
function otherKindOf(schema: Json): string | undefined {
  const names = Object.keys(schema);
  const unknown = names.filter((name) => !KNOWN.has(name) && !name.startsWith('x-'));
  if (unknown.length === 0 || names.some((name) => WITH_EFFECT.has(name))) return undefined;
  const has = (...wanted: string[]): string | undefined => wanted.find((name) => Object.hasOwn(schema, name));
  const [name] = unknown;
  if (has('openapi', 'swagger', 'asyncapi'))
    return 'this is an API document, no JSON Schema: give one of its schemas, with what that refers to';
  const inner = has('schema', 'jsonSchema', 'json_schema', 'inputSchema', 'input_schema', 'parameters', 'function');
  if (inner !== undefined)
    return `this is no JSON Schema: no member of it is a keyword; it looks like something that has one as its member "${inner}"`;
  return (
    `this is no JSON Schema: no member of it is a keyword, and any value would conform; it looks like an example. ` +
    `Members such as "${name!.slice(0, 100)}" are described in "properties"`
  );
}

function mistypedIn(schema: Json, path: string): Violation[] {
  const details: Violation[] = [];
  let unknown = 0;
  const open: [pointer: string, schema: unknown][] = [[path, schema]];
  const isEnough = (): boolean => details.length >= MAX_DETAILS || unknown >= MAX_UNKNOWN;
  while (open.length > 0 && !isEnough()) {
    const [pointer, each] = open.pop() as [string, unknown];
    if (typeof each !== 'object' || each === null || Array.isArray(each)) continue;
    for (const [keyword, value] of Object.entries(each as Json)) {
      if (isEnough()) break;
      const at = `${pointer}/${escapePointer(keyword)}`;
      if (KNOWN.has(keyword)) open.push(...subschemas(keyword, value, at));
      else unknown++;
      const message = faultOf(keyword, value, each as Json);
      if (message !== undefined) details.push({ path: at, message });
    }
  }
  return details;
}

function faultOf(keyword: string, value: unknown, schema: Json): string | undefined {
  if (keyword === 'enum' && Array.isArray(value) && value.length === 0) return 'an empty enum allows no value at all';
  if (keyword === 'format' && typeof value === 'string') {
    if (Object.hasOwn(formats, value) || FORMATS.has(value) || NEAR_UUID.has(value)) return undefined;
    const meant = FORMATS.values().find((known) => isTypingError(value, known));
    return meant === undefined ? undefined : `is not a known format; did you mean "${meant}"?`;
  }
  if (KNOWN.has(keyword) || /^x-/i.test(keyword)) return undefined;
  const meant = WITH_EFFECT.values().find((known) => !Object.hasOwn(schema, known) && isTypingError(keyword, known));
  return meant === undefined ? undefined : `is not a keyword of JSON Schema; did you mean "${meant}"?`;
}

function subschemas(keyword: string, value: unknown, at: string): [string, unknown][] {
  if (!APPLICATORS.includes(keyword) || typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value)) return value.map((part, index) => [`${at}/${index}`, part]);
  if (!MAPS.has(keyword)) return [[at, value]];
  return Object.entries(value).map(([name, part]) => [`${at}/${escapePointer(name)}`, part]);
}
