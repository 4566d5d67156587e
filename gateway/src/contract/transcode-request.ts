import type { IncomingMessage } from 'node:http';
import type { Field, Type } from 'protobufjs';
import type { RateLeft } from 'proto/auth/v1/auth.ts';
import { fieldOptions } from './rest-methods.ts';
import { MAX_DETAILS, ServiceError, type Violation } from 'platform/core/errors.ts';
import { segmentsOf } from 'platform/core/json-pointer.ts';
import { isObject, membersOf } from 'platform/json/parts.ts';
import { pointerTo } from 'platform/json/pointer.ts';
import { compileField, compileParameter, type Check } from './field-checks.ts';

/** The parts of a request, beside its headers, that become the request message. */
export interface RequestParts {
  /** Path parameters in their order, decoded. */
  pathValues: string[];
  /** Still encoded, without "?". */
  query: string;
  /** JSON as strictJson returns it; undefined if the route takes no body. */
  body: Buffer | undefined;
  /** What the rate limits still admit; set by limit-rates. */
  ratesLeft?: () => readonly RateLeft[];
}
/**
 * Makes the request message, a plain object with camelCase names, from path, query, headers and body.
 * @throws ServiceError INVALID_REQUEST with every violation, up to 20
 */
export type ToMessage = (
  req: Pick<IncomingMessage, 'headersDistinct' | 'headers'>,
  parts: RequestParts,
) => Record<string, unknown>;

interface Binding {
  /** camelCase names of the fields that the path sets, in its order. */
  params: readonly string[];
  takesBody: boolean;
  /** A GET, of which If-None-Match is a condition (`sendReply`). */
  reads: boolean;
  ignoredMembers: readonly string[];
}

const FIELD_MASK = '.google.protobuf.FieldMask';
/** Headers that change what a request does: where they have no meaning, they are not ignored. */
const CONDITIONS = ['Idempotency-Key', 'If-Match', 'If-None-Match'];
export const HEADER_VALUE = /^[\x20-\x7e]{1,255}$/;

/** Compiles the checks once per route, so that a request costs one look-up per member. */
export function compileRequest(type: Type, { params, takesBody, reads, ignoredMembers }: Binding): ToMessage {
  const members = new Map<string, Check<Buffer>>();
  const parameters = new Map<string, Check<string>>();
  const required: string[] = [];
  const fromHeaders: { name: string; header: string }[] = [];
  let maskName: string | undefined;
  let ratesName: string | undefined;
  for (const field of type.fieldsArray) {
    const options = fieldOptions(field);
    if (field.resolvedType?.fullName === FIELD_MASK) maskName = field.name;
    else if (options.ratesLeft) ratesName = field.name;
    else if (options.header !== '') fromHeaders.push({ name: field.name, header: options.header });
    else if (!params.includes(field.name) && !options.internal) {
      if (takesBody && !options.query) members.set(field.name, checkOf(field, compileField));
      else parameters.set(field.name, checkOf(field, compileParameter));
      if (options.required) required.push(field.name);
    }
  }
  const ignored = new Set(ignoredMembers);
  const meaningless = CONDITIONS.filter(
    (name) => fromHeaders.every(({ header }) => header !== name) && !(reads && name === 'If-None-Match'),
  );

  return (req, { pathValues, query, body, ratesLeft }) => {
    const message: Record<string, unknown> = {};
    const violations: Violation[] = [];
    const given: string[] = [];
    const set = <V extends Buffer | string>(
      checks: ReadonlyMap<string, Check<V>>,
      name: string,
      value: V,
      kind: string,
    ): void => {
      const check = checks.get(name);
      if (check) {
        message[name] = check(value, pointerTo(name), violations);
        if (kind === 'member') given.push(name);
      } else if (kind !== 'member' || !ignored.has(name)) {
        violations.push({ path: pointerTo(name), message: `is not a known ${kind}` });
      }
    };
    const setParameters = (): void => {
      for (const [name, value] of query === '' ? [] : parseQuery(query)) {
        if (Object.hasOwn(message, name))
          violations.push({ path: pointerTo(name), message: 'is given more than once' });
        else set(parameters, name, value, 'query parameter');
      }
    };
    if (takesBody) {
      setParameters();
      for (const [name, value] of membersOf(requireObject(body))) {
        set(members, name, value, 'member');
        if (violations.length >= MAX_DETAILS) break;
      }
    } else setParameters();
    for (const name of required)
      if (!Object.hasOwn(message, name)) violations.push({ path: pointerTo(name), message: 'is required' });
    for (const header of meaningless) {
      if (req.headers[header.toLowerCase()] !== undefined)
        violations.push({ path: pointerTo(header), message: 'is not taken by this request' });
    }
    for (const { name, header } of fromHeaders) {
      if (req.headers[header.toLowerCase()] !== undefined) message[name] = headerValue(req, header, violations);
    }
    if (violations.length > 0) throw invalidRequest(violations);
    params.forEach((name, index) => {
      message[name] = pathValues[index];
    });
    if (maskName !== undefined) message[maskName] = { paths: given };
    if (ratesName !== undefined) message[ratesName] = ratesLeft?.();
    return message;
  };
}

function checkOf<V extends Buffer | string>(field: Field, compile: (field: Field) => Check<V>): Check<V> {
  const check = compile(field);
  if (!fieldOptions(field).required) return check;
  return (value, path, violations) => {
    const checked = check(value, path, violations);
    // an empty text in a required field is as good as none
    if (checked === '') violations.push({ path, message: 'must not be empty' });
    return checked;
  };
}

function requireObject(body: Buffer | undefined): Buffer {
  if (body && isObject(body)) return body;
  throw new ServiceError('INVALID_REQUEST', 'The body must be a JSON object', {
    details: [{ path: '', message: 'must be a JSON object' }],
  });
}

function headerValue(req: Pick<IncomingMessage, 'headersDistinct'>, header: string, violations: Violation[]): string {
  const values = req.headersDistinct[header.toLowerCase()] as string[];
  const [value] = values as [string];
  if (values.length > 1) violations.push({ path: pointerTo(header), message: 'is given more than once' });
  else if (!HEADER_VALUE.test(value))
    violations.push({ path: pointerTo(header), message: 'must be 1 to 255 printable characters' });
  return value;
}

/**
 * Decodes `a=b&c=d` with percent-encoding and "+" for a space.
 * @throws ServiceError INVALID_REQUEST for broken encoding or NUL
 */
export function parseQuery(query: string): [name: string, value: string][] {
  const decode = (text: string): string => {
    try {
      const decoded = decodeURIComponent(text.replaceAll('+', ' '));
      if (!decoded.includes('\0')) return decoded;
    } catch (error) {
      if (!(error instanceof URIError)) throw error;
    }
    throw new ServiceError('INVALID_REQUEST', 'The query string is not valid');
  };
  return query
    .split('&')
    .filter((pair) => pair !== '')
    .map((pair) => {
      const split = pair.includes('=') ? pair.indexOf('=') : pair.length;
      return [decode(pair.slice(0, split)), decode(pair.slice(split + 1))];
    });
}

/** The message is a sentence made of the first violation; `details` has all of them. */
function invalidRequest(details: Violation[]): ServiceError {
  const [{ path, message }] = details as [Violation];
  return new ServiceError('INVALID_REQUEST', `${segmentsOf(path).join('/')} ${message}`, { details });
}
