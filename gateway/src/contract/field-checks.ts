import type { Enum, Field, Type } from 'protobufjs';
import { fieldOptions } from './rest-methods.ts';
import type { Violation } from 'platform/core/errors.ts';
import { pointerTo } from './json.ts';

/** JSON value -> field value; pushes a fault with the value's path when it does not fit. Nothing is coerced. */
export type Check = (value: unknown, path: string, faults: Violation[]) => unknown;

/** The check of one field of a body. */
export function compileField(field: Field): Check {
  if (field.map) throw new Error(`${field.fullName}: a map cannot be set through REST`);
  const check = compileValue(field);
  if (!field.repeated) return check;
  return (value, path, faults) => {
    if (Array.isArray(value)) return value.map((element, index) => check(element, `${path}/${index}`, faults));
    return fault(faults, path, 'must be an array');
  };
}

function compileValue(field: Field): Check {
  if (fieldOptions(field).json) return (value) => JSON.stringify(value);
  const resolved = field.resolvedType;
  if (resolved && 'fields' in resolved) return compileMessage(resolved);
  if (resolved) return enumCheck(resolved);
  const scalar = SCALARS[field.type];
  if (!scalar) throw new Error(`${field.fullName}: a field of type ${field.type} cannot be set through REST`);
  return (value, path, faults) => (scalar.fits(value) ? value : fault(faults, path, scalar.message));
}

function compileMessage(type: Type): Check {
  const members = new Map(type.fieldsArray.map((field) => [field.name, compileField(field)]));
  const required = type.fieldsArray.filter((field) => fieldOptions(field).required).map(({ name }) => name);
  return (value, path, faults) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      return fault(faults, path, 'must be an object');
    for (const name of required) if (!Object.hasOwn(value, name)) fault(faults, path + pointerTo(name), 'is required');
    const message: Record<string, unknown> = {};
    for (const [name, member] of Object.entries(value)) {
      const check = members.get(name);
      if (check) message[name] = check(member, path + pointerTo(name), faults);
      else fault(faults, path + pointerTo(name), 'is not a known member');
    }
    return message;
  };
}

function enumCheck({ values }: Enum): Check {
  const numbers = new Map(Object.entries(values));
  return (value, path, faults) =>
    typeof value === 'string' && numbers.has(value)
      ? numbers.get(value)
      : fault(faults, path, `must be one of ${[...numbers.keys()].join(', ')}`);
}

function fault(faults: Violation[], path: string, message: string): undefined {
  faults.push({ path, message });
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

/** The check of one field as a query parameter: its text is read strictly, then it is the same as in a body. */
export function parseParameter(field: Field): Check {
  const check = compileField(field);
  switch (field.repeated ? 'repeated' : field.type) {
    case 'string':
      return check;
    case 'bool':
      return (text, path, faults) => check(text === 'true' || (text === 'false' ? false : text), path, faults);
    case 'int32':
    case 'int64':
    case 'uint32':
    case 'uint64':
      return (text, path, faults) => check(/^(0|-?[1-9]\d*)$/.test(String(text)) ? Number(text) : text, path, faults);
    default:
      throw new Error(`${field.fullName}: a field of this type cannot be a query parameter`);
  }
}
