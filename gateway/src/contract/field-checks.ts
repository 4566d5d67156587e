import type { Enum, Field, Type } from 'protobufjs';
import { fieldOptions } from './rest-methods.ts';
import { parseJson } from 'platform/core/parse-json.ts';
import { MAX_DETAILS, type Violation } from 'platform/core/errors.ts';
import { elementsOf, isArray, isObject, membersOf } from 'platform/json/parts.ts';
import { pointerTo } from 'platform/json/pointer.ts';

/**
 * Turns a value into a field value without coercion. If it does not fit, pushes a violation with the value's path.
 * @param value of a member of a body: JSON as strictJson returns it; of a query parameter: its text
 */
export type Check<V extends Buffer | string> = (value: V, path: string, violations: Violation[]) => unknown;

/** Of one list. Each element costs far more than the bytes of a short one. */
const MAX_ELEMENTS = 1_000;

/** Compiles the check of one field of a body. */
export function compileField(field: Field): Check<Buffer> {
  if (field.map) throw new Error(`${field.fullName}: a map cannot be set through REST`);
  const { nullable } = fieldOptions(field);
  const check = compileValue(field);
  if (!field.repeated)
    return (json, path, violations) => (nullable && isNull(json) ? undefined : check(json, path, violations));
  return (json, path, violations) => {
    if (!isArray(json)) return addViolation(violations, path, 'must be an array');
    const elements = Array.from(elementsOf(json).take(MAX_ELEMENTS + 1));
    if (elements.length > MAX_ELEMENTS)
      return addViolation(violations, path, `must have at most ${MAX_ELEMENTS} elements`);
    return elements.map((element, index) => check(element, `${path}/${index}`, violations));
  };
}

function compileValue(field: Field): Check<Buffer> {
  if (fieldOptions(field).json) return (json) => json.toString();
  const resolved = field.resolvedType;
  if (resolved && 'fields' in resolved) return compileMessage(resolved);
  const check = compileScalar(field);
  return (json, path, violations) => check(scalarOf(json), path, violations);
}

const isNull = (json: Buffer): boolean => json.length === 4 && json.toString() === 'null';

/** Undefined for an object or array, which fits no scalar field: no value is made of it. */
const scalarOf = (json: Buffer): unknown => (isObject(json) || isArray(json) ? undefined : parseJson(json.toString()));

function compileMessage(type: Type): Check<Buffer> {
  const members = new Map(type.fieldsArray.map((field) => [field.name, compileField(field)]));
  const required = type.fieldsArray.filter((field) => fieldOptions(field).required).map(({ name }) => name);
  return (json, path, violations) => {
    if (!isObject(json)) return addViolation(violations, path, 'must be an object');
    const message: Record<string, unknown> = {};
    for (const [name, value] of membersOf(json)) {
      const check = members.get(name);
      if (check) message[name] = check(value, path + pointerTo(name), violations);
      else addViolation(violations, path + pointerTo(name), 'is not a known member');
      if (violations.length >= MAX_DETAILS) return undefined;
    }
    for (const name of required)
      if (!Object.hasOwn(message, name)) addViolation(violations, path + pointerTo(name), 'is required');
    return message;
  };
}

type ScalarCheck = (value: unknown, path: string, violations: Violation[]) => unknown;

function compileScalar(field: Field): ScalarCheck {
  const resolved = field.resolvedType;
  if (resolved) return enumCheck(resolved as Enum);
  const scalar = SCALARS[field.type];
  if (!scalar) throw new Error(`${field.fullName}: a field of type ${field.type} cannot be set through REST`);
  return (value, path, violations) => {
    const fault = scalar(value);
    return fault === undefined ? value : addViolation(violations, path, fault);
  };
}

function enumCheck({ values }: Enum): ScalarCheck {
  const numbers = new Map(Object.entries(values));
  return (value, path, violations) =>
    typeof value === 'string' && numbers.has(value)
      ? numbers.get(value)
      : addViolation(violations, path, `must be one of ${[...numbers.keys()].join(', ')}`);
}

function addViolation(violations: Violation[], path: string, message: string): undefined {
  violations.push({ path, message });
}

/** What is wrong with a value; undefined when it fits. */
type Scalar = (value: unknown) => string | undefined;
const integerFrom =
  (min: number, max: number): Scalar =>
  (value) => {
    if (!Number.isInteger(value)) return 'must be an integer';
    if ((value as number) < min) return min === 0 ? 'must be at least 0' : 'is too small';
    return (value as number) > max ? 'is too large' : undefined;
  };
const of =
  (type: string, message: string): Scalar =>
  (value) =>
    typeof value === type ? undefined : message;
const INT32 = integerFrom(-(2 ** 31), 2 ** 31 - 1);
const INT64 = integerFrom(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);

const SCALARS: Readonly<Record<string, Scalar>> = {
  string: of('string', 'must be a string'),
  bool: of('boolean', 'must be true or false'),
  int32: INT32,
  int64: INT64,
  uint32: integerFrom(0, 2 ** 32 - 1),
  uint64: integerFrom(0, Number.MAX_SAFE_INTEGER),
  double: of('number', 'must be a number'),
};

/** Compiles the check of one field as a query parameter: parses the text strictly, then checks it as in a body. */
export function compileParameter(field: Field): Check<string> {
  if (field.map || field.repeated || fieldOptions(field).json) throw notAParameter(field);
  switch (field.type) {
    case 'string':
      return compileScalar(field);
    case 'bool': {
      const check = compileScalar(field);
      return (text, path, violations) => check(text === 'true' || (text === 'false' ? false : text), path, violations);
    }
    case 'int32':
    case 'int64':
    case 'uint32':
    case 'uint64': {
      const check = compileScalar(field);
      return (text, path, violations) => check(/^(0|-?[1-9]\d*)$/.test(text) ? Number(text) : text, path, violations);
    }
    default:
      throw notAParameter(field);
  }
}

const notAParameter = ({ fullName }: Field): Error =>
  new Error(`${fullName}: a field of this type cannot be a query parameter`);
