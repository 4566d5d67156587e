import { _, Name, type Ajv, type CodeKeywordDefinition, type KeywordCxt } from 'ajv';
import names from 'ajv/dist/compile/names.js';
import containsKeyword from 'ajv/dist/vocabularies/applicator/contains.js';
import { and } from 'ajv/dist/compile/codegen/index.js';
import { alwaysValidSchema, evaluatedPropsToName } from 'ajv/dist/compile/util.js';
import ifKeyword from 'ajv/dist/vocabularies/applicator/if.js';
import { noPropertyInData, propertyInData } from 'ajv/dist/vocabularies/code.js';
import unevaluatedItemsKeyword from 'ajv/dist/vocabularies/unevaluated/unevaluatedItems.js';
import unevaluatedPropertiesKeyword from 'ajv/dist/vocabularies/unevaluated/unevaluatedProperties.js';

type Code = CodeKeywordDefinition['code'];

/** Keywords whose subschemas evaluate members and items only where they are valid. */
const BRANCHING = ['anyOf', 'oneOf', 'if'];
const OF_OBJECTS = ['dependentSchemas', 'dependencies'];
const REQUIRING = ['required', 'dependentRequired', 'dependencies'];
/** Keywords whose subschemas may be applied to nothing. */
const APPLYING = ['propertyNames', 'prefixItems', 'items'];
const definitionOfContains = containsKeyword.default;
const definitionOfIf = ifKeyword.default;
const definitionOfUnevaluatedItems = unevaluatedItemsKeyword.default;
const definitionOfUnevaluatedProperties = unevaluatedPropertiesKeyword.default;

/**
 * Replaces keywords whose verdicts in ajv 8 are not those of JSON Schema, as the official test suite or a comparison
 * with another validator shows:
 * - `required`, `dependentRequired`, `dependencies`: an empty name is not missed (only the first error is looked for).
 * - `propertyNames`, `prefixItems`, `items` as a list: for an object or list that has nothing to which they apply, what
 *   follows is not checked, or has the verdict of the one before (only the first error is looked for).
 * - `contains`: of several lists, an empty one has the verdict of the one before it; all items count as evaluated.
 * - `if`: what it evaluates counts as evaluated although it fails; without `then` and `else` it is not looked at.
 * - `anyOf` and its like: what was evaluated before is forgotten when none of its subschemas evaluates anything.
 * - `unevaluatedProperties`: in a branch, a member with a name that all objects inherit counts as evaluated.
 * - `unevaluatedItems`: an `items` in a branch, which evaluates all items, counts as if it had evaluated one.
 */
export function correctAjv(ajv: Ajv): void {
  for (const keyword of REQUIRING) wrap(ajv, keyword, codeOfRequiring);
  for (const keyword of APPLYING) wrap(ajv, keyword, codeOfApplying);
  replace(ajv, { ...definitionOfContains, code: codeOfContains });
  if (!ajv.opts.unevaluated) return;
  replace(ajv, { ...definitionOfIf, code: codeOfIf });
  for (const keyword of BRANCHING) wrap(ajv, keyword, withVariables);
  for (const keyword of OF_OBJECTS) wrap(ajv, keyword, codeOfDependencies, 'unevaluatedProperties');
  replace(ajv, { ...definitionOfUnevaluatedItems, code: codeOfUnevaluatedItems });
  replace(ajv, { ...definitionOfUnevaluatedProperties, code: codeOfUnevaluatedProperties });
}

function replace(ajv: Ajv, definition: CodeKeywordDefinition): void {
  for (const keyword of [definition.keyword].flat()) ajv.removeKeyword(keyword);
  ajv.addKeyword(definition);
}

function wrap(ajv: Ajv, keyword: string, around: (code: Code) => Code, before?: string): void {
  const rule = ajv.RULES.all[keyword] as { definition: CodeKeywordDefinition } | undefined;
  if (rule) replace(ajv, { ...rule.definition, ...(before && { before }), code: around(rule.definition.code) });
}

/** ajv takes the name that it has found to be missing for the verdict, so an empty one is looked for apart. */
function codeOfRequiring(code: Code): Code {
  return (cxt) => {
    const { gen, data, it } = cxt;
    if (it.allErrors) return code(cxt);
    const isList = Array.isArray(cxt.schema);
    const lists = (isList ? [['', cxt.schema]] : Object.entries(cxt.schema as object)) as [string, unknown][];
    const withEmpty = lists.filter(([, names]) => Array.isArray(names) && names.includes(''));
    if (withEmpty.length === 0) return code(cxt);
    const others = lists.map(([name, names]) => [name, Array.isArray(names) ? names.filter(Boolean) : names] as const);
    cxt.schema = isList ? others[0]![1] : Object.fromEntries(others);
    code(cxt);
    for (const [property] of withEmpty) {
      const isMissing = noPropertyInData(gen, data, '', true);
      cxt.setParams({ missingProperty: _`${''}`, property, depsCount: 1, deps: '' });
      cxt.fail(isList ? isMissing : and(propertyInData(gen, data, property, true), isMissing));
    }
  };
}

/** ajv asks for the verdict of what was applied last, which for no member or item is nothing, or that of before. */
function codeOfApplying(code: Code): Code {
  return (cxt) => {
    const { gen, it } = cxt;
    const isEach = cxt.keyword === 'items' && !Array.isArray(cxt.schema);
    if (!it.allErrors && !isEach) {
      const before = gen.const('_errs', names.default.errors);
      cxt.ok = () => void gen.if(_`${before} === ${names.default.errors}`);
    }
    code(cxt);
  };
}

function codeOfContains(cxt: KeywordCxt): void {
  const { minContains = 1, maxContains } = cxt.parentSchema;
  const { result } = cxt;
  // In this case alone the variable of the verdict has no first value.
  if (maxContains === undefined && minContains === 1)
    cxt.result = (valid, ...actions) => result.call(cxt, _`${cxt.data}.length > 0 && ${valid}`, ...actions);
  const { items } = cxt.it;
  definitionOfContains.code(cxt);
  cxt.it.items = items;
}

/** What was evaluated so far becomes variables, to which the code of a branch can add. */
function withVariables(code: Code): Code {
  return (cxt) => {
    const { it, gen } = cxt;
    if (it.props !== true && !(it.props instanceof Name)) it.props = evaluatedPropsToName(gen, it.props);
    if (it.items !== true && !(it.items instanceof Name)) it.items = gen.var('items', it.items ?? 0);
    code(cxt);
  };
}

/** Its code is not executed for a list, of which it therefore cannot say what is evaluated. */
function codeOfDependencies(code: Code): Code {
  return (cxt) => {
    const { items } = cxt.it;
    withVariables(code)(cxt);
    cxt.it.items = items;
  };
}

function codeOfIf(cxt: KeywordCxt): void {
  const { gen, it } = cxt;
  const saysSomething = (keyword: string): boolean =>
    it.schema[keyword] !== undefined && !alwaysValidSchema(it, it.schema[keyword]);
  const merge = cxt.mergeEvaluated.bind(cxt);
  let isValid: Name;
  const subschema = cxt.subschema.bind(cxt);
  cxt.subschema = (applied, valid) => {
    if (applied.keyword === 'if') isValid = valid;
    return subschema(applied, valid);
  };
  // ajv merges at once, which is right for what is always applied.
  cxt.mergeEvaluated = (schema, toName) =>
    toName ? merge(schema, toName) : void cxt.mergeValidEvaluated(schema, isValid);
  if (saysSomething('then') || saysSomething('else')) return definitionOfIf.code(cxt);
  const applied = { keyword: 'if', compositeRule: true, createErrors: false, allErrors: false } as const;
  cxt.mergeEvaluated(cxt.subschema(applied, gen.name('_valid')));
  cxt.reset();
}

function codeOfUnevaluatedItems(cxt: KeywordCxt): void {
  const { items } = cxt.it;
  if (items instanceof Name) cxt.it.items = cxt.gen.const('from', _`${items} === true ? ${cxt.data}.length : ${items}`);
  definitionOfUnevaluatedItems.code(cxt);
}

function codeOfUnevaluatedProperties(cxt: KeywordCxt): void {
  const { props } = cxt.it;
  if (props instanceof Name) cxt.gen.code(_`${props} && ${props} !== true && Object.setPrototypeOf(${props}, null)`);
  definitionOfUnevaluatedProperties.code(cxt);
}
