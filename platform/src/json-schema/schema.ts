import type { ErrorObject, ValidateFunction } from 'ajv';
import type { SchemaEnv } from 'ajv/dist/compile/index.js';
import { ServiceError, type Violation } from '../core/errors.ts';
import { isDeeper } from '../core/json-depth.ts';
import { escapePointer } from '../core/json-pointer.ts';
import { parseJson } from '../core/parse-json.ts';
import { OverBudgetError, withBudget } from './budget.ts';
import { heapBytesOf } from './compile-cost.ts';
import { EnoughViolationsError, newAjv, type Draft } from './compiler.ts';
import { lintSchema, SchemaRejectedError } from './lint.ts';
import { patternsOfSchema, type Patterns } from './patterns.ts';

const MAX_BYTES = 64 * 1024;
const MAX_DEPTH = 32;
const MAX_VIOLATIONS = 20;
/** Units of budget.ts: more than the largest content needs with an ordinary schema, little enough to stop an attack. */
const CHECK_UNITS = 400_000;
/** Less when all errors are reported: each unit may add an error. */
const REPORT_UNITS = 100_000;

interface ReportOptions {
  showAllowed?: boolean;
}
export interface CompiledSchema {
  /** Of heap, as estimated. */
  readonly bytes: number;
  /**
   * At most 20 violations, none when the value conforms. A message names the rule, and never contains a value from the
   * checked one.
   * @param at JSON pointer of the value in the request ("/content"): the paths begin with it
   * @param options.showAllowed name the values of const and enum, to those whose own schema it is
   */
  validate(value: unknown, at?: string, options?: ReportOptions): Violation[];
}

/**
 * Compiles a JSON Schema (draft 2020-12, or draft-07 by `$schema`) that may come from an attacker.
 * @param schemaText JSON text, at most 64 KiB and 32 levels
 * @param options.path JSON pointer of the schema in the request ("/jsonSchema"): the paths in details begin with it
 * @throws ServiceError INVALID_SCHEMA
 */
export function compileSchema(schemaText: string, { path = '' }: { path?: string } = {}): CompiledSchema {
  if (Buffer.byteLength(schemaText) > MAX_BYTES)
    throw invalidSchema(path, `the schema is larger than ${MAX_BYTES} bytes`);
  return compile(parse(schemaText, path), path);
}

function invalidSchema(path: string, message: string, cause?: unknown): ServiceError {
  return new ServiceError('INVALID_SCHEMA', undefined, { details: [{ path, message }], cause });
}

function parse(schemaText: string, path: string): Record<string, unknown> {
  let schema: unknown;
  try {
    schema = parseJson(schemaText);
  } catch (error) {
    throw invalidSchema(path, 'the schema is not JSON', error);
  }
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema))
    throw invalidSchema(path, 'the schema must be an object');
  if (isDeeper(schema, MAX_DEPTH)) throw invalidSchema(path, `the schema has more than ${MAX_DEPTH} levels`);
  return schema as Record<string, unknown>;
}

function draftOf({ $schema }: Record<string, unknown>, path: string): Draft {
  if ($schema === undefined || ($schema as string) === 'https://json-schema.org/draft/2020-12/schema') return '2020-12';
  if (typeof $schema === 'string' && /^https?:\/\/json-schema\.org\/draft-07\/schema#?$/.test($schema))
    return 'draft-07';
  throw invalidSchema(`${path}/$schema`, 'only draft 2020-12 and draft-07 are supported');
}

const metaPatterns = patternsOfSchema();
const metaSchemas = new Map<Draft, ValidateFunction>();

/** Compiled when it is first needed, which a process that checks no schema of this draft never does. */
function metaSchemaOf(draft: Draft): ValidateFunction {
  const known = metaSchemas.get(draft);
  if (known) return known;
  const id =
    draft === 'draft-07' ? 'http://json-schema.org/draft-07/schema' : 'https://json-schema.org/draft/2020-12/schema';
  const made = newAjv(draft, { validateFormats: false, inlineRefs: true }, metaPatterns).getSchema(id)!;
  metaSchemas.set(draft, made);
  return made;
}

function compile(schema: Record<string, unknown>, path: string): CompiledSchema {
  const draft = draftOf(schema, path);
  const isSchema = metaSchemaOf(draft);
  try {
    if (!withBudget(CHECK_UNITS, () => isSchema(schema))) {
      throw new ServiceError('INVALID_SCHEMA', undefined, { details: mistakes(isSchema.errors!, path) });
    }
    const patterns = patternsOfSchema();
    const { linted, collects } = lintSchema(schema, draft, patterns);
    return compileLinted(linted, draft, patterns, collects);
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    if (error instanceof SchemaRejectedError) throw invalidSchema(path + error.pointer, error.message);
    throw invalidSchema(path, 'the schema is too complex', error);
  }
}

/** What it returns keeps all that this function holds, so the schema as it was given is not among it. */
function compileLinted(
  linted: Record<string, unknown>,
  draft: Draft,
  patterns: Patterns,
  unevaluated: boolean,
): CompiledSchema {
  let codeLength = 0;
  const text = JSON.stringify(linted);
  const compiled: SchemaEnv[] = [];
  const make = (allErrors: boolean) =>
    newAjv(draft, { allErrors, unevaluated, meta: false, validateSchema: false }, patterns, (length, one) => {
      if (!allErrors) codeLength += length;
      if (unevaluated) compiled.push(one);
    }).compile(linted);
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

/** Of a schema that the meta-schema refuses: one for each place, not also those of the alternatives that it tried. */
function mistakes(errors: readonly ErrorObject[], at: string): Violation[] {
  const simple = errors.filter(({ keyword }) => !['anyOf', 'allOf', 'oneOf', 'if', 'not'].includes(keyword));
  const byPlace = new Map<string, ErrorObject>();
  for (const error of simple.length > 0 ? simple : errors)
    if (!byPlace.has(error.instancePath) || error.keyword === 'enum') byPlace.set(error.instancePath, error);
  // the words of JSON Schema itself are no secret of anybody's schema
  return violations([...byPlace.values()], at, { showAllowed: true });
}

function violations(errors: readonly ErrorObject[], at: string, options: ReportOptions): Violation[] {
  const found = new Map<string, Violation>();
  for (const error of errors) {
    const violation = violationOf(error, at, options);
    found.set(`${violation.path}\n${violation.message}`, violation);
    if (found.size === MAX_VIOLATIONS) break;
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
    case 'additionalProperties':
      return member(params['additionalProperty'], 'is not allowed');
    case 'unevaluatedProperties':
      return member(params['unevaluatedProperty'], 'is not allowed');
    case 'false schema':
      return here('is not allowed');
    case 'const':
      return here(showAllowed ? `must be ${listed([params['allowed']])}` : 'must be the one allowed value');
    case 'enum':
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
