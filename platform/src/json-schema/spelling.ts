import { editDistance } from '../core/edit-distance.ts';
import { MAX_DETAILS, ServiceError, type Violation } from '../core/errors.ts';
import { escapePointer } from '../core/json-pointer.ts';
import { formats } from './formats.ts';
import { APPLICATORS, KEYWORDS, MAPS } from './keywords.ts';

type Json = Record<string, unknown>;

/** Keywords that only tell people something, those that lint.ts refuses by name, and two of OpenAPI. */
const ANNOTATIONS = [
  ...['title', 'description', 'default', 'examples', 'example', 'deprecated', 'readOnly', 'writeOnly', 'nullable'],
  ...['$comment', '$id', '$schema', '$ref', '$anchor', '$vocabulary', '$dynamicRef', '$dynamicAnchor'],
  ...['$recursiveRef', '$recursiveAnchor', 'contentEncoding', 'contentMediaType', 'contentSchema'],
];
const KNOWN = [...new Set([...KEYWORDS, ...ANNOTATIONS])];
const FORMATS = Object.keys(formats);
/** Each costs some comparisons; the rest of a schema with more unknown keywords is not looked at. */
const MAX_UNKNOWN = 500;
/** A shorter word is near too many others. */
const SHORTEST = 4;

/**
 * Refuses a keyword or format that is a letter or two from a known one, because it would be ignored without a word.
 * Other unknown ones are annotations. Takes time linear in the schema: call it through the fair scheduler.
 * @param path JSON pointer of the schema in the request
 * @throws ServiceError INVALID_SCHEMA
 */
export function checkSpelling(schema: Json, path: string): void {
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
      if (KNOWN.includes(keyword)) open.push(...subschemas(keyword, value, at));
      else unknown++;
      const meant = nearest(keyword, KNOWN);
      if (meant !== undefined)
        details.push({ path: at, message: `is not a keyword of JSON Schema; did you mean "${meant}"?` });
      const format = keyword === 'format' && typeof value === 'string' ? nearest(value, FORMATS) : undefined;
      if (format !== undefined) details.push({ path: at, message: `is not a known format; did you mean "${format}"?` });
    }
  }
  if (details.length > 0) throw new ServiceError('INVALID_SCHEMA', undefined, { details });
}

function subschemas(keyword: string, value: unknown, at: string): [string, unknown][] {
  if (!APPLICATORS.includes(keyword) || typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value)) return value.map((part, index) => [`${at}/${index}`, part]);
  if (!MAPS.has(keyword)) return [[at, value]];
  return Object.entries(value).map(([name, part]) => [`${at}/${escapePointer(name)}`, part]);
}

/** The known word that a misspelled one is near; undefined for a known word and for one that is near none. */
function nearest(word: string, known: readonly string[]): string | undefined {
  if (known.includes(word)) return undefined;
  const max = word.length <= 5 ? 1 : 2;
  return known.find((candidate) => candidate.length >= SHORTEST && editDistance(word, candidate, max) <= max);
}
