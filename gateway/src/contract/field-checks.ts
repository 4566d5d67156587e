import type { Enum, Field, Type } from 'protobufjs';
import { fieldOptions } from './rest-methods.ts';
import type { Violation } from 'platform/core/errors.ts';
import { pointerTo } from './json.ts';

/**
 * Turns a JSON value into a field value without coercion. If it does not fit, pushes a violation with the value's path.
 */
export type Check = (value: unknown, path: string, violations: Violation[]) => unknown;

/** Compiles the check of one field of a body. */
export function compileField(field: Field): Check {
  if (field.map) throw new Error(`${field.fullName}: a map cannot be set through REST`);
  const check = compileValue(field);
  if (!field.repeated) return check;
  return (value, path, violations) => {
    if (Array.isArray(value)) return value.map((element, index) => check(element, `${path}/${index}`, violations));
    return addViolation(violations, path, 'must be an array');
  };
}

function compileValue(field: Field): Check {
  if (fieldOptions(field).json) return (value) => JSON.stringify(value);
  const resolved = field.resolvedType;
  if (resolved && 'fields' in resolved) return compileMessage(resolved);
  if (resolved) return enumCheck(resolved);
  const scalar = SCALARS[field.type];
  if (!scalar) throw new Error(`${field.fullName}: a field of type ${field.type} cannot be set through REST`);
  return (value, path, violations) => (scalar.fits(value) ? value : addViolation(violations, path, scalar.message));
}

function compileMessage(type: Type): Check {
  const members = new Map(type.fieldsArray.map((field) => [field.name, compileField(field)]));
  const required = type.fieldsArray.filter((field) => fieldOptions(field).required).map(({ name }) => name);
  return (value, path, violations) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      return addViolation(violations, path, 'must be an object');
    for (const name of required)
      if (!Object.hasOwn(value, name)) addViolation(violations, path + pointerTo(name), 'is required');
    const message: Record<string, unknown> = {};
    for (const [name, member] of Object.entries(value)) {
      const check = members.get(name);
      if (check) message[name] = check(member, path + pointerTo(name), violations);
      else addViolation(violations, path + pointerTo(name), 'is not a known member');
    }
    return message;
  };
}

function enumCheck({ values }: Enum): Check {
  const numbers = new Map(Object.entries(values));
  return (value, path, violations) =>
    typeof value === 'string' && numbers.has(value)
      ? numbers.get(value)
      : addViolation(violations, path, `must be one of ${[...numbers.keys()].join(', ')}`);
}

function addViolation(violations: Violation[], path: string, message: string): undefined {
  violations.push({ path, message });
}

interface Scalar {
  fits(value: unknown): boolean;
  message: string;
}
const integerFrom = (min: number, max: number): Scalar => ({
  fits: (value) => Number.isInteger(value) && (value as number) >= min && (value as number) <= max,
  message: 'must be an integer',
});
const INT32 = integerFrom(-(2 ** 31), 2 ** 31 - 1);
const INT64 = integerFrom(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
const DOUBLE: Scalar = { fits: (value) => typeof value === 'number', message: 'must be a number' };

const SCALARS: Readonly<Record<string, Scalar>> = {
  string: { fits: (value) => typeof value === 'string', message: 'must be a string' },
  bool: { fits: (value) => typeof value === 'boolean', message: 'must be true or false' },
  int32: INT32,
  int64: INT64,
  uint32: integerFrom(0, 2 ** 32 - 1),
  uint64: integerFrom(0, Number.MAX_SAFE_INTEGER),
  double: DOUBLE,
};

/** Compiles the check of one field as a query parameter: parses the text strictly, then checks it as in a body. */
export function compileParameter(field: Field): Check {
  const check = compileField(field);
  switch (field.repeated ? 'repeated' : field.type) {
    case 'string':
      return check;
    case 'bool':
      return (text, path, violations) => check(text === 'true' || (text === 'false' ? false : text), path, violations);
    case 'int32':
    case 'int64':
    case 'uint32':
    case 'uint64':
      return (text, path, violations) =>
        check(/^(0|-?[1-9]\d*)$/.test(String(text)) ? Number(text) : text, path, violations);
    default:
      throw new Error(`${field.fullName}: a field of this type cannot be a query parameter`);
  }
}
