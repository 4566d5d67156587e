import type { ErrorObject } from 'ajv';
import { MAX_DETAILS, type Violation } from '../core/errors.ts';
import { escapePointer, segmentsOf, valueAt } from '../core/json-pointer.ts';
import type { Dialect } from './dialects.ts';
import { MAPS } from './keywords.ts';

export interface ReportOptions {
  /** Name the values of const and enum, to those whose own schema it is. */
  showAllowed?: boolean;
}

/** Of a schema that the meta-schema refuses: one for each place, not also those of the alternatives that it tried. */
export function mistakes(
  errors: readonly ErrorObject[],
  at: string,
  { dialect, schema }: { dialect: Dialect; schema: unknown },
): Violation[] {
  const simple = errors.filter(({ keyword }) => !['anyOf', 'allOf', 'oneOf', 'if', 'not'].includes(keyword));
  const byPlace = new Map<string, ErrorObject>();
  for (const error of simple.length > 0 ? simple : errors) {
    const other = byPlace.get(error.instancePath)?.keyword;
    if (other === undefined || other === 'type' || error.keyword === 'enum') byPlace.set(error.instancePath, error);
  }
  // a value with a mistake in it is not of the wrong type: that is what an alternative says
  const places = [...byPlace.keys()];
  for (const [place, { keyword }] of byPlace)
    if (keyword === 'type' && places.some((other) => other.startsWith(`${place}/`))) byPlace.delete(place);
  const hints = [...byPlace.keys()].flatMap((pointer) => {
    const message = hintAt(pointer, valueAt(schema, pointer), dialect);
    return message === undefined ? [] : [{ path: at + pointer, message }];
  });
  // the words of JSON Schema itself are no secret of anybody's schema
  return hints.length > 0 ? hints : violations([...byPlace.values()], at, { showAllowed: true });
}

/** What the value of a keyword looks like, if it is the form of another draft. */
function hintAt(pointer: string, value: unknown, dialect: Dialect): string | undefined {
  const [keyword = '', outer = ''] = segmentsOf(pointer).toReversed();
  if (MAPS.has(outer)) return undefined;
  if (keyword === 'items' && Array.isArray(value) && dialect === '2020-12')
    return 'this is the form of draft-07: say so in $schema, or use prefixItems';
  if (/^exclusiveM(?:in|ax)imum$/.test(keyword) && typeof value === 'boolean')
    return 'this is the form of draft-04: say so in $schema, or give the limit itself';
  if (keyword === 'required' && typeof value === 'boolean')
    return 'this is the form of draft-03: list the required names in the schema of the object';
  return undefined;
}

export function violations(errors: readonly ErrorObject[], at: string, options: ReportOptions): Violation[] {
  const found = new Map<string, Violation>();
  for (const error of errors) {
    const violation = violationOf(error, at, options);
    found.set(`${violation.path}\n${violation.message}`, violation);
    if (found.size === MAX_DETAILS) break;
  }
  return [...found.values()];
}

function violationOf(
  { keyword, instancePath, params, message }: ErrorObject,
  at: string,
  { showAllowed = false }: ReportOptions,
): Violation {
  const here = (text: string): Violation => ({ path: shortened(at + instancePath), message: text });
  const member = (name: string, text: string): Violation => ({
    path: shortened(`${at}${instancePath}/${escapePointer(name)}`),
    message: text,
  });
  switch (keyword) {
    case 'required':
      return member(params['missingProperty'], 'is required');
    case 'dependentRequired':
    case 'dependencies':
      return member(params['missingProperty'], shortened(`is required beside ${JSON.stringify(params['property'])}`));
    case 'additionalProperties':
      return member(params['additionalProperty'], 'is not allowed');
    case 'unevaluatedProperties':
      return member(params['unevaluatedProperty'], 'is not allowed');
    case 'false schema':
      return here('is not allowed');
    case 'const':
      return here(showAllowed ? `must be ${listed([params['allowed']])}` : 'must be the one allowed value');
    case 'enum':
      if ((params['allowed'] as unknown[]).length === 0) return here('is not allowed: the enum of the schema is empty');
      return here(showAllowed ? `must be one of ${listed(params['allowed'])}` : 'must be one of the allowed values');
    case 'multipleOf':
      return here(`must be a multiple of ${params['limit']}`);
    case 'uniqueItems':
      return here('must not have equal items');
    case 'minLength':
      return here(`must have at least ${params['limit']} characters`);
    case 'maxLength':
      return here(`must have at most ${params['limit']} characters`);
    case 'minProperties':
      return here(`must have at least ${params['limit']} members`);
    case 'maxProperties':
      return here(`must have at most ${params['limit']} members`);
    case 'propertyNames':
      return here('has a member whose name is not allowed');
    default:
      return here(shortened(message!));
  }
}

/** Values as JSON, as many as fit in a sentence. */
function listed(values: readonly unknown[]): string {
  const texts = values.slice(0, 20).map((value) => JSON.stringify(value));
  return shortened(texts.join(', ') + (values.length > texts.length ? ', …' : ''));
}

/** Messages and paths contain names and patterns that can be as long as a request. */
const shortened = (text: string): string => (text.length > 500 ? `${text.slice(0, 500)}…` : text);
