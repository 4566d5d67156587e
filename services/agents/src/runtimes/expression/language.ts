import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { BOUNDED, BOUNDS } from './bounds.ts';
import { changed, type Change } from './source-changes.ts';

/** Stands before JSONata's source; all of it can use these names. */
const BEFORE = `
var definitions = new WeakMap();
var signatures = new WeakMap();
var placeholder = Object.freeze({});
function hidden(definition) {
  var handle = Object.create(null);
  if (definition.apply) Object.defineProperty(handle, 'apply', { value: frozen(definition.apply) });
  definitions.set(Object.freeze(handle), definition);
  return handle;
}
function callable(closure, arity) {
  return hidden({
    _jsonata_function: true,
    isCallable: true,
    implementation: closure,
    arity: arity,
    apply: function (self, args) { return closure.apply(self, args); }
  });
}
function revealed(value) {
  return typeof value === 'object' && value !== null ? definitions.get(value) : value;
}
function frozen(closure) {
  if (closure.prototype) Object.freeze(closure.prototype);
  return Object.freeze(closure);
}
function membersOf(root) {
  var members = new Set();
  for (var open = [root]; open.length > 0;) {
    var value = open.pop();
    if (typeof value !== 'object' || value === null) continue;
    if (!Array.isArray(value)) members.add(value);
    for (var key of Object.keys(value)) open.push(value[key]);
  }
  return members;
}
function changeable(match, members, transform) {
  if (members.has(match)) return match;
  throw {
    code: 'T2014',
    message: 'The pattern of a transform must select objects of the value that it transforms',
    position: transform.pattern.position
  };
}
function shown(error, name) {
  var value = error[name];
  if (error.code[0] === 'S' || name === 'token' || name === 'index' || name === 'type') return JSON.stringify(value);
  if (value === undefined || value === null) return value === null ? 'null' : 'nothing';
  if (typeof value === 'function' || definitions.has(value)) return 'a function';
  if (Array.isArray(value)) return 'an array';
  return { string: 'a string', number: 'a number', boolean: 'a boolean' }[typeof value] || 'an object';
}
`;

/**
 * JSONata represents a function as a plain object. An expression could read, copy and change its members: the
 * implementation, the closure, and through the closure the limits of the evaluation. It could also pass data off as a
 * function. Here it holds a frozen handle without members; the definition is in a map that only the evaluator reads.
 * No value of an expression is a function of JavaScript: as a member named "then" it would make data a promise.
 */
const FUNCTIONS_ARE_HANDLES: Change[] = [
  [
    `return ((arg && (arg._jsonata_function === true || arg._jsonata_lambda === true)) || typeof arg === 'function');`,
    `return definitions.has(arg) || typeof arg === 'function';`,
  ],
  [
    `return arg && arg._jsonata_lambda === true;`,
    `return definitions.has(arg) && definitions.get(arg)._jsonata_lambda === true;`,
  ],
  [`var arity = typeof func.arity`, `func = revealed(func); var arity = typeof func.arity`],
  [
    `while(isLambda(result) && result.thunk === true) {`,
    `while(isLambda(result) && definitions.get(result).thunk === true) {
            result = definitions.get(result);`,
  ],
  [
    `if(result.body.procedure.type === 'variable') {
                next.token = result.body.procedure.value;
            }
            next.position = result.body.procedure.position;`,
    `var tail = result.body.procedure;`,
  ],
  [
    `result = await applyInner(next, evaluatedArgs, input, environment);`,
    `result = await applyInner(next, evaluatedArgs, input, environment).catch(function (error) {
                error.position = error.position || tail.position;
                error.token = error.token || tail.value;
                throw error;
            });`,
  ],
  [
    `if(typeof proc === 'object') {
                proc.token = procName;
                proc.position = expr.position;
            }`,
    ``,
  ],
  [
    `closure.arity = getFunctionArity(arg);
                evaluatedArgs.push(closure);`,
    `evaluatedArgs.push(revealed(arg).isCallable ? arg : callable(closure, getFunctionArity(arg)));`,
  ],
  [
    `try {
            var validatedArgs = args;`,
    `proc = revealed(proc);
        try {
            var validatedArgs = args;`,
  ],
  [
    `if (isLambda(proc)) {
                result = await applyProcedure`,
    `if (proc && proc._jsonata_lambda === true) {
                result = await applyProcedure`,
  ],
  [
    `typeof arg === 'object' && !isLambda(arg)) {
            for`,
    `typeof arg === 'object' && !isFunction(arg)) {
            for`,
  ],
  [`return await apply(procedure, args, input,`, `return await apply(handle, args, input,`],
  [
    `};
        return procedure;
    }

    /**
     * Evaluate partial application`,
    `};
        var handle = hidden(procedure);
        return handle;
    }

    /**
     * Evaluate partial application`,
  ],
  [
    `if (isLambda(proc)) {
            result = partialApplyProcedure`,
    `proc = revealed(proc);
        if (proc && proc._jsonata_lambda === true) {
            result = partialApplyProcedure`,
  ],
  [
    `body: proc.body
        };
        return procedure;`,
    `body: proc.body
        };
        return hidden(procedure);`,
  ],
  [
    `return definition;`,
    `frozen(func);
        if (definition.signature) signatures.set(func, definition.signature);
        return hidden(Object.freeze(definition));`,
  ],
  [
    `return result;
        };
        return closure;`,
    `if (result) result.next = callable(result.next, 0);
            return result;
        };
        return callable(closure, closure.length);`,
  ],
];

/** Copies are read by `parseJson` of platform, because V8's JSON.parse lets one text change another (ADR 19). */
const COPIES_ARE_READ_SAFELY: Change[] = [[`return JSON.parse(fn.string(arg));`, `return parseJson(fn.string(arg));`]];

/** A transform changes a copy of its input, made by the built-in function, and nothing else that its pattern finds. */
const TRANSFORMS_CHANGE_COPIES: Change[] = [
  [
    `var cloneFunction = environment.lookup('clone');
            if(!isFunction(cloneFunction)) {
                // throw type error
                throw {
                    code: "T2013",
                    stack: (new Error()).stack,
                    position: expr.position
                };
            }
            var result = await apply(cloneFunction, [obj], null, environment);`,
    `var result = functionClone(obj);
            var members = membersOf(result);`,
  ],
  [
    `match[prop] = update[prop];`,
    `Object.defineProperty(changeable(match, members, expr), prop, {
                                value: update[prop],
                                writable: true,
                                enumerable: true,
                                configurable: true
                            });`,
  ],
  [`delete match[deletions[jj]];`, `delete changeable(match, members, expr)[deletions[jj]];`],
];

/** What JSONata tells by members of arrays, data could claim by a member of that name; it counts on arrays only. */
const DATA_IS_NO_MARK: Change[] = [
  [`if( input && input.tupleStream) {`, `if( Array.isArray(input) && input.tupleStream) {`],
  [`var reduce = input && input.tupleStream`, `var reduce = Array.isArray(input) && input.tupleStream`],
  [`result = input && input.outerWrapper`, `result = Array.isArray(input) && input.outerWrapper`],
  [
    `resultSequence = await evaluate(step, inputSequence, environment);`,
    `resultSequence = await evaluate(step, inputSequence, environment);
                if (resultSequence !== undefined && !Array.isArray(resultSequence))
                    resultSequence = environment.base.createSequence(resultSequence);`,
  ],
  [
    `evaluatedArgs.push(arg);
            } else {
                evaluatedArgs.push(await evaluate(arg, input, environment));`,
    `evaluatedArgs.push(placeholder);
            } else {
                evaluatedArgs.push(await evaluate(arg, input, environment));`,
  ],
  [
    `var arg = args[index];
            if (arg && arg.type === 'operator' && arg.value === '?') {`,
    `var arg = args[index];
            if (arg === placeholder) {`,
  ],
  [
    `exec_env.createSequence = function() {
                    var sequence = [];
                    if (options && options.sequence) {
                        sequence.push = function(...items) {
                            if(sequence.length + items.length > options.sequence) {
                                throw {
                                    code: "D2015",
                                    stack: (new Error()).stack,
                                    value: options.sequence
                                };
                            }
                            return Array.prototype.push.apply(sequence, items);
                        };
                    }`,
    `const push = {
                    value: frozen(function(...items) {
                        if (this.length + items.length > options.sequence) throw { code: "D2015" };
                        return Array.prototype.push.apply(this, items);
                    })
                };
                exec_env.createSequence = function() {
                    bounds.work(20);
                    var sequence = Object.defineProperty([], 'push', push);`,
  ],
];

/** The language's own messages name a position and a kind of value, never a value of the data. */
const MESSAGES_SHOW_KINDS: Change[] = [
  [`return JSON.stringify(err[arguments[1]]);`, `return shown(err, arguments[1]);`],
  [`"The maximum sequence length of {{value}} was exceeded."`, `"The maximum sequence length was exceeded"`],
  [`must not exceed 1e7.  Attempted to allocate {{value}}."`, `must not exceed 1e7"`],
];

const functionNamesOf = (source: string): string[] =>
  [...source.matchAll(/\b(?:staticFrame|environment|exec_env)\.bind\('(\w+)'/g)].map(([, name]) => name!);

/**
 * The text of a function that takes `parseJson` of platform and returns a `Language` (evaluator.ts): JSONata with the
 * changes that keep one evaluation from another (docs/adr/0016).
 * @throws Error if JSONata's source is not the one that the changes were written for
 */
export function languageSource(): string {
  const source = changed(readFileSync(createRequire(import.meta.url).resolve('jsonata'), 'utf8'), [
    ...FUNCTIONS_ARE_HANDLES,
    ...COPIES_ARE_READ_SAFELY,
    ...TRANSFORMS_CHANGE_COPIES,
    ...DATA_IS_NO_MARK,
    ...MESSAGES_SHOW_KINDS,
    ...BOUNDED,
  ]);
  return `(function (parseJson) {
${BEFORE}
${BOUNDS}
var module = { exports: {} }, exports = module.exports;
${source}
return {
  jsonata: module.exports,
  isFunction: function (value) { return typeof value === 'function' || definitions.has(value); },
  functionNames: ${JSON.stringify(functionNamesOf(source))},
  bound: function (given) { bounds = given; }
};
})`;
}
