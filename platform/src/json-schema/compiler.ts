import { Ajv, _, type CodeKeywordDefinition, type Options, type ErrorObject } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { SchemaEnv } from 'ajv/dist/compile/index.js';
import names from 'ajv/dist/compile/names.js';
import { MAX_DETAILS } from '../core/errors.ts';
import { correctAjv } from './ajv-corrections.ts';
import { spend } from './budget.ts';
import { isMultipleOf } from './decimal-division.ts';
import { refHidesSiblings, type Dialect } from './dialects.ts';
import { allDiffer, equalsOneOf, memberCountOf, unitsOfMembers } from './equality.ts';
import { formats } from './formats.ts';
import type { Patterns } from './patterns.ts';
import { LOOP_REQUIRED } from './compile-cost.ts';

/** Ends a check that collects all errors once it has MAX_DETAILS. Not a failure. */
export class EnoughViolationsError extends Error {
  override readonly name = 'EnoughViolationsError';
  readonly errors: ErrorObject[];
  constructor(errors: ErrorObject[]) {
    super();
    this.errors = errors;
  }
}

/**
 * What checking a value by one subschema costs: `units`, and `perItem` or `perKey` for each item or member of the
 * value.
 */
export interface CheckCost {
  units: number;
  perItem: number;
  perKey: number;
  /**
   * An error here makes the whole value invalid: the subschema is in no branch (such as anyOf or not) that may fail.
   */
  definite: boolean;
}
/**
 * The keyword with a CheckCost that lintSchema adds to each subschema; the generated code spends it from the budget.
 */
export const CHECK_COST = 'x-cost';
function charge(data: unknown, units: number, perItem: number, perKey: number): void {
  let cost = units;
  if (perItem > 0 && Array.isArray(data)) cost += perItem * data.length;
  else if (perKey > 0 && typeof data === 'object' && data !== null && !Array.isArray(data))
    cost += perKey * unitsOfMembers(memberCountOf(data));
  spend(cost);
}

/** With `allErrors` the errors found so far cost as well: ajv copies their list at each reference. */
function chargeReport(
  data: unknown,
  units: number,
  perItem: number,
  perKey: number,
  errors: ErrorObject[] | null,
  definite: boolean,
): void {
  const count = errors === null ? 0 : errors.length;
  if (definite && errors !== null && count >= MAX_DETAILS) throw new EnoughViolationsError(errors);
  charge(data, units + (count >> 6), perItem, perKey);
}

const checkCost: CodeKeywordDefinition = {
  keyword: CHECK_COST,
  schemaType: 'object',
  before: '$ref',
  code({ gen, data, schema, it }) {
    const { units, perItem, perKey, definite } = schema as CheckCost;
    if (String(it.errorPath).includes('.replace(')) {
      // ajv would escape the name of a member, which may be as long as a request, at each reference for each item in it
      Object.assign(it, { errorPath: gen.const('path', it.errorPath) });
      gen.code(_`${gen.scopeValue('func', { ref: spend })}(${it.errorPath}.length / 16)`);
    }
    if (it.allErrors) {
      const spendFunction = gen.scopeValue('func', { ref: chargeReport });
      gen.code(_`${spendFunction}(${data}, ${units}, ${perItem}, ${perKey}, ${names.default.vErrors}, ${definite})`);
    } else {
      const spendFunction = gen.scopeValue('func', { ref: charge });
      gen.code(_`${spendFunction}(${data}, ${units}, ${perItem}, ${perKey})`);
    }
  },
};

/** Tests the length in code points, which are counted only when the number of UTF-16 units does not decide. */
function codePointsBetween(min: number, max: number): (data: string) => boolean {
  return (data) => {
    if (data.length < min || data.length > 2 * max + 1) return false;
    if (data.length >= 2 * min && data.length <= max) return true;
    spend(1 + data.length / 32);
    let count = data.length;
    for (let i = 1; i < data.length; i++)
      if (isLowSurrogate(data.charCodeAt(i)) && isHighSurrogate(data.charCodeAt(i - 1))) count--;
    return count >= min && count <= max;
  };
}
const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00;
const isLowSurrogate = (unit: number): boolean => unit >= 0xdc00 && unit < 0xe000;

/** V8 compiles a function in parentheses at once; other functions it parses twice. */
const eagerlyCompiled = (code: string): string => `${code.replace('return function', 'return (function')})`;

/**
 * A new ajv instance, for schemas in the terms of ajvs-terms.ts. Each schema gets one: a shared instance leaks memory
 * and lets one schema refer to another.
 * @param onCode is told the length of each function's code, and whose code it is
 */
export function newAjv(
  dialect: Dialect,
  options: Options,
  patterns: Patterns,
  onCode: (length: number, compiled: SchemaEnv) => void = () => {},
): Ajv {
  const isOld = refHidesSiblings(dialect);
  const AjvOfDialect = isOld ? Ajv : Ajv2020;
  const regExp = Object.assign((source: string) => patterns.compile(source), { code: 'patterns' });
  const process = (code: string, compiled?: SchemaEnv): string => {
    onCode(code.length, compiled!);
    return eagerlyCompiled(code);
  };
  const ajv = new AjvOfDialect({
    strict: false,
    meta: false,
    validateSchema: false,
    logger: false,
    addUsedSchema: false,
    inlineRefs: false,
    ownProperties: true,
    formats,
    loopRequired: LOOP_REQUIRED,
    code: { regExp, optimize: false, process },
    ...options,
  });
  // Ajv2020 itself always follows what is evaluated, which is only of use to `unevaluatedItems` and its like.
  ajv.opts.unevaluated = !isOld && (options.unevaluated ?? false);
  correctAjv(ajv);
  // One table for all checks of a schema: the time that ajv needs is quadratic in the number of values it binds.
  const checks: ((data: never) => boolean)[] = [];
  /** What each check allows, for the message of a violation; numbers stand in the code itself. */
  const allowed: unknown[] = [];
  const replace = (
    keyword: string,
    definition: Omit<CodeKeywordDefinition, 'keyword' | 'code'>,
    make: (schema: never) => (data: never) => boolean,
  ): void => {
    ajv.removeKeyword(keyword);
    ajv.addKeyword({
      keyword,
      error: {
        message: '',
        params: ({ schemaCode, params, gen }) =>
          definition.schemaType === 'number'
            ? _`{limit: ${schemaCode}}`
            : _`{allowed: ${gen.scopeValue('obj', { ref: allowed })}[${params['index']}]}`,
      },
      ...definition,
      code(cxt) {
        const index = checks.push(make(cxt.schema as never)) - 1;
        allowed[index] = cxt.schema;
        cxt.setParams({ index: _`${index}` });
        cxt.pass(_`${cxt.gen.scopeValue('obj', { ref: checks })}[${index}](${cxt.data})`);
      },
    });
  };
  replace('multipleOf', { type: 'number', schemaType: 'number' }, isMultipleOf);
  replace('const', {}, (value) => equalsOneOf([value]));
  replace('enum', { schemaType: 'array' }, equalsOneOf);
  replace('uniqueItems', { type: 'array', schemaType: 'boolean' }, (on) => (on ? allDiffer : () => true));
  replace('minProperties', { type: 'object', schemaType: 'number' }, (min) => (data) => memberCountOf(data) >= min);
  replace('maxProperties', { type: 'object', schemaType: 'number' }, (max) => (data) => memberCountOf(data) <= max);
  replace('minLength', { type: 'string', schemaType: 'number' }, (min) => codePointsBetween(min, Infinity));
  replace('maxLength', { type: 'string', schemaType: 'number' }, (max) => codePointsBetween(0, max));
  ajv.addKeyword(checkCost);
  return ajv;
}
