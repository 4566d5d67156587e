import type { ErrorObject, ValidateFunction } from 'ajv';
import type { SchemaEnv } from 'ajv/dist/compile/index.js';
import { ServiceError, type Violation } from '../core/errors.ts';
import { isDeeper } from '../core/json-depth.ts';
import { parseJson } from '../core/parse-json.ts';
import { OverBudgetError, withBudget } from './budget.ts';
import { heapBytesOf } from './compile-cost.ts';
import { compileInOrder } from './compile-order.ts';
import { EnoughViolationsError, newAjv } from './compiler.ts';
import { dialectOfSchema, KNOWN_SCHEMAS, type Dialect } from './dialects.ts';
import { lintSchema } from './lint.ts';
import { metaSchemaOf } from './meta-schema.ts';
import { patternsOfSchema, type Patterns } from './patterns.ts';
import { SchemaRejectedError } from './rejected.ts';
import type { Json } from './subschema.ts';
import { mistakes, violations, type ReportOptions } from './violations.ts';

const MAX_BYTES = 64 * 1024;
/** Of JSON text, as everywhere. */
const MAX_JSON_LEVELS = 64;
/** Units of budget.ts: more than the largest content needs with an ordinary schema, little enough to stop an attack. */
const CHECK_UNITS = 400_000;
/** Less when all errors are reported: each unit may add an error. */
const REPORT_UNITS = 100_000;

export interface CompiledSchema {
  /** Of heap, as estimated. */
  readonly bytes: number;
  /**
   * At most 20 violations, none when the value conforms. A message names the rule, and never contains a value from the
   * checked one.
   * @param at JSON pointer of the value in the request ("/content"): the paths begin with it
   */
  validate(value: unknown, at?: string, options?: ReportOptions): Violation[];
}

export interface CompileOptions {
  /** JSON pointer of the schema in the request ("/jsonSchema"): the paths in details begin with it. */
  path?: string;
  /** JSON pointers to subschemas: a list is checked, each of its items by one of them. */
  places?: readonly string[];
}

/**
 * Compiles a JSON Schema that may come from an attacker, of the dialect that `$schema` names: draft-04, -06, -07,
 * 2019-09 or, without one, 2020-12.
 * @param schemaText JSON text, at most 64 KiB
 * @throws ServiceError INVALID_SCHEMA
 */
export function compileSchema(schemaText: string, { path = '', places }: CompileOptions = {}): CompiledSchema {
  if (Buffer.byteLength(schemaText) > MAX_BYTES)
    throw invalidSchema(path, `the schema is larger than ${MAX_BYTES} bytes`);
  return compile(parse(schemaText, path), path, places);
}

function invalidSchema(path: string, message: string, cause?: unknown): ServiceError {
  return new ServiceError('INVALID_SCHEMA', undefined, { details: [{ path, message }], cause });
}

function parse(schemaText: string, path: string): Json {
  let schema: unknown;
  try {
    schema = parseJson(schemaText);
  } catch (error) {
    throw invalidSchema(path, 'the schema is not JSON', error);
  }
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema))
    throw invalidSchema(path, 'the schema must be an object');
  if (isDeeper(schema, MAX_JSON_LEVELS)) throw invalidSchema(path, `the JSON has more than ${MAX_JSON_LEVELS} levels`);
  return schema as Json;
}

const isInMetaSchema = (pointer: string): boolean => !pointer.startsWith('/');

function dialectOf({ $schema }: Json, path: string): Dialect {
  if ($schema === undefined) return '2020-12';
  const dialect = typeof $schema === 'string' ? dialectOfSchema($schema) : undefined;
  if (dialect === undefined) throw invalidSchema(`${path}/$schema`, `must be one of ${KNOWN_SCHEMAS.join(', ')}`);
  return dialect;
}

function compile(schema: Json, path: string, places: readonly string[] | undefined): CompiledSchema {
  const dialect = dialectOf(schema, path);
  const isSchema = metaSchemaOf(dialect);
  const requireSchema = (value: unknown, pointer: string): void => {
    if (!isSchema(value))
      throw new ServiceError('INVALID_SCHEMA', undefined, {
        details: mistakes(isSchema.errors!, path + pointer, { dialect, schema: value }),
      });
  };
  try {
    const patterns = patternsOfSchema();
    // In one budget, because what several references lead to may be large, and the same but for its outermost level.
    const lint = withBudget(CHECK_UNITS, () => {
      requireSchema(schema, '');
      return lintSchema(schema, { dialect, patterns, places, requireSchema });
    });
    return compileLinted(lint, dialect, patterns);
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    if (error instanceof SchemaRejectedError)
      throw invalidSchema(path + (isInMetaSchema(error.pointer) ? '' : error.pointer), error.message);
    throw invalidSchema(path, 'the schema is too complex', error);
  }
}

/** What it returns keeps all that this function holds, so the schema as it was given is not among it. */
function compileLinted(
  { linted, definitions, collects: unevaluated }: ReturnType<typeof lintSchema>,
  dialect: Dialect,
  patterns: Patterns,
): CompiledSchema {
  let codeLength = 0;
  const text = JSON.stringify(linted);
  const compiled: SchemaEnv[] = [];
  const make = (allErrors: boolean) => {
    const ajv = newAjv(dialect, { allErrors, unevaluated }, patterns, (length, one) => {
      if (!allErrors) codeLength += length;
      if (unevaluated) compiled.push(one);
    });
    return compileInOrder(ajv, linted, definitions);
  };
  /** ajv keeps the names of the members that each function has found last, which may be all of the largest content. */
  const forgetMembers = (): void => {
    for (const { validate } of compiled) if (validate?.evaluated?.dynamicProps) validate.evaluated.props = undefined;
  };
  const conforms = make(false);
  // V8 compiles the function at its first call, and only then may find that it is nested too deeply.
  for (const value of [null, 0, '', [], {}]) withBudget(CHECK_UNITS, () => conforms(value));
  let reportAll: ValidateFunction | undefined;
  return {
    bytes: heapBytesOf(codeLength, text.length, patterns.bytes),
    validate(value, at = '', options = {}) {
      try {
        const first = errorsOf(() => conforms, value, CHECK_UNITS);
        if (first === 'too costly')
          return [{ path: at, message: 'takes more steps to check against the schema than are allowed' }];
        if (first.length === 0) return [];
        const all = errorsOf(() => (reportAll ??= make(true)), value, REPORT_UNITS);
        return violations(all === 'too costly' ? first : all, at, options);
      } finally {
        forgetMembers();
      }
    },
  };
}

function errorsOf(check: () => ValidateFunction, value: unknown, units: number): ErrorObject[] | 'too costly' {
  try {
    return withBudget(units, () => check()(value)) ? [] : check().errors!;
  } catch (error) {
    if (error instanceof EnoughViolationsError) return error.errors;
    if (error instanceof OverBudgetError || error instanceof RangeError) return 'too costly';
    throw error;
  }
}
