import { Ajv, _, type CodeKeywordDefinition, type Options, type ErrorObject } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import names from 'ajv/dist/compile/names.js';
import { canonicalJson } from '../core/canonical-json.ts';
import { spend } from './budget.ts';
import { formats, type Patterns } from './patterns.ts';
import { LOOP_REQUIRED } from './weight.ts';

export type Draft = '2020-12' | 'draft-07';

/** Thrown out of a report that has as many errors as an answer can hold. */
export class Enough extends Error {
  override readonly name = 'Enough';
  readonly errors: ErrorObject[];
  constructor(errors: ErrorObject[]) {
    super();
    this.errors = errors;
  }
}

/** What a visit of a subschema costs: `units`, plus `perItem` or `perKey` for each item or member of the value. */
export interface Cost {
  units: number;
  perItem: number;
  perKey: number;
  /** An error here is an error of the whole value: no branch around it can forgive it. */
  definite: boolean;
}
/** The keyword that the lint writes into its copy of each subschema. */
export const COST = 'x-cost';

function charge(data: unknown, units: number, perItem: number, perKey: number): void {
  let cost = units;
  if (perItem > 0 && Array.isArray(data)) cost += perItem * data.length;
  else if (perKey > 0 && typeof data === 'object' && data !== null && !Array.isArray(data))
    cost += perKey * Object.keys(data).length;
  spend(cost);
}

/** A report also pays for the errors it carries along, as ajv copies their list at each reference. */
function chargeReport(
  data: unknown,
  units: number,
  perItem: number,
  perKey: number,
  errors: ErrorObject[] | null,
  definite: boolean,
): void {
  const count = errors === null ? 0 : errors.length;
  if (definite && errors !== null && count >= 20) throw new Enough(errors);
  charge(data, units + (count >> 6), perItem, perKey);
}

const cost: CodeKeywordDefinition = {
  keyword: COST,
  schemaType: 'object',
  before: '$ref',
  code({ gen, data, schema, it }) {
    const { units, perItem, perKey, definite } = schema as Cost;
    if (it.allErrors) {
      const paid = gen.scopeValue('func', { ref: chargeReport });
      gen.code(_`${paid}(${data}, ${units}, ${perItem}, ${perKey}, ${names.default.vErrors}, ${definite})`);
    } else {
      const paid = gen.scopeValue('func', { ref: charge });
      gen.code(_`${paid}(${data}, ${units}, ${perItem}, ${perKey})`);
    }
  },
};

function canonicalPaid(value: unknown): string {
  const text = canonicalJson(value);
  spend(2 + text.length / 3);
  return text;
}

/** Equality to one of some values. ajv's own compares one by one, and calls members of the value that are named like methods. */
function oneOf(allowed: readonly unknown[]): (data: unknown) => boolean {
  const scalars = new Set(allowed.filter((value) => typeof value !== 'object' || value === null));
  const texts = new Set(allowed.filter((value) => typeof value === 'object' && value !== null).map(canonicalJson));
  return (data) =>
    typeof data !== 'object' || data === null ? scalars.has(data) : texts.size > 0 && texts.has(canonicalPaid(data));
}

/** Equality of items in linear time; ajv's own compares each with each. */
const allDiffer = (data: unknown[]): boolean => new Set(data.map(canonicalPaid)).size === data.length;

/** Length in code points, counted only when the number of UTF-16 units leaves it open. */
function codePointsBetween(min: number, max: number): (data: string) => boolean {
  return (data) => {
    if (data.length < min || data.length > 2 * max + 1) return false;
    if (data.length >= 2 * min && data.length <= max) return true;
    spend(1 + data.length / 32);
    let count = data.length;
    for (let i = 1; i < data.length; i++) if (isLow(data.charCodeAt(i)) && isHigh(data.charCodeAt(i - 1))) count--;
    return count >= min && count <= max;
  };
}
const isHigh = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00;
const isLow = (unit: number): boolean => unit >= 0xdc00 && unit < 0xe000;

/** In parentheses V8 compiles a function where it meets it, not after a first look over it. */
const compiledAtOnce = (code: string): string => `${code.replace('return function', 'return (function')})`;

/** A new instance of ajv: one a schema, because a shared one leaks memory and lets one schema refer into another. */
export function engine(draft: Draft, options: Options, patterns: Patterns): Ajv {
  const Engine = draft === 'draft-07' ? Ajv : Ajv2020;
  const regExp = Object.assign((source: string) => patterns(source), { code: 'patterns' });
  const ajv = new Engine({
    strict: false,
    logger: false,
    addUsedSchema: false,
    inlineRefs: false,
    ownProperties: true,
    multipleOfPrecision: 8,
    formats,
    loopRequired: LOOP_REQUIRED,
    code: { regExp, optimize: false, process: compiledAtOnce },
    ...options,
  });
  // One table for all checks of a schema: ajv's work is quadratic in the number of values that it binds.
  const checks: ((data: never) => boolean)[] = [];
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
        params: ({ schemaCode }) => (definition.schemaType === 'number' ? _`{limit: ${schemaCode}}` : _`{}`),
      },
      ...definition,
      code(cxt) {
        const index = checks.push(make(cxt.schema as never)) - 1;
        cxt.pass(_`${cxt.gen.scopeValue('obj', { ref: checks })}[${index}](${cxt.data})`);
      },
    });
  };
  replace('const', {}, (value) => oneOf([value]));
  replace('enum', { schemaType: 'array' }, oneOf);
  replace('uniqueItems', { type: 'array', schemaType: 'boolean' }, (on) => (on ? allDiffer : () => true));
  replace('minLength', { type: 'string', schemaType: 'number' }, (min) => codePointsBetween(min, Infinity));
  replace('maxLength', { type: 'string', schemaType: 'number' }, (max) => codePointsBetween(0, max));
  ajv.addKeyword(cost);
  return ajv;
}
