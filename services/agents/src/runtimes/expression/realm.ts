import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { constants, createContext, Script, type Context } from 'node:vm';
import { parseJson } from 'platform/core/parse-json.ts';
import { matchInRe2 } from 'platform/patterns/in-re2.ts';
import type { RE2JS } from 're2js';
import { changed, type Change } from './source-changes.ts';
import { REPORT_STEPS, type EvaluationLimits, type EvaluationResult } from '../runners/evaluation.ts';
import { invalidOutputAt } from '../invalid-output.ts';
import { makeJsonText, type MakeJsonText } from './json-text.ts';
import { makeEvaluator, type Evaluator, type Host, type Language } from './evaluator.ts';
import { keepExpressions } from './kept-expressions.ts';
import { languageSource } from './language.ts';
import { makePatterns, type MakePatterns } from './patterns.ts';
import { findUnknownName } from './unknown-names.ts';

/**
 * A JavaScript realm with its own built-in objects and its own JSONata. What is evaluated in it shares no object with
 * any other realm.
 */
export interface Realm {
  /** @returns why the source cannot be evaluated */
  check(source: string): string | undefined;
  evaluate(source: string, argsText: string, limits: EvaluationLimits): EvaluationResult;
  /** The global object of the realm, with its JSONata as `language`. */
  readonly context: Context;
}

/** Organizations whose realm a runner keeps: opening one takes about 5 ms of CPU time, keeping it 0.4 MB. */
const KEPT_REALMS = 4;

/**
 * Freezes the built-in objects from which values inherit, in the realm that runs the text of this function. Libraries
 * assign some inherited members on their instances, which a frozen value forbids; an accessor in its place allows it.
 */
function freezeBuiltIns(): void {
  const assignedOnInstances = ['name', 'message', 'toString', 'constructor'];
  for (const prototype of [Object.prototype, Error.prototype])
    for (const name of assignedOnInstances.filter((member) => Object.hasOwn(prototype, member))) {
      const { value } = Object.getOwnPropertyDescriptor(prototype, name)!;
      Object.defineProperty(prototype, name, {
        get: () => value as unknown,
        set(assigned: unknown) {
          Object.defineProperty(this, name, { value: assigned, writable: true, enumerable: true, configurable: true });
        },
      });
    }
  const generator = function* () {};
  const asyncGenerator = async function* () {};
  const iterators = [
    [][Symbol.iterator](),
    ''[Symbol.iterator](),
    new Map().keys(),
    new Set().keys(),
    ''.matchAll(/x/g),
  ];
  const constructors = [
    ...[Object, Function, Array, Number, Boolean, String, Symbol, BigInt, Date, Promise, RegExp, Map, Set, WeakMap],
    ...[WeakSet, Error, RangeError, ReferenceError, SyntaxError, TypeError, URIError, Iterator, Uint8Array],
  ];
  const builtIns: object[] = [
    ...constructors,
    ...constructors.map(({ prototype }) => prototype as object),
    ...[generator, asyncGenerator, async () => undefined, ...iterators].map((value) => Object.getPrototypeOf(value)),
    ...[generator.prototype, asyncGenerator.prototype, Uint8Array, Uint8Array.prototype].map(Object.getPrototypeOf),
    Object.getPrototypeOf(Object.getPrototypeOf(asyncGenerator.prototype)),
    Array.prototype[Symbol.unscopables],
    JSON,
    Math,
  ] as object[];
  for (const builtIn of builtIns) {
    for (const key of Reflect.ownKeys(builtIn)) {
      const { value, get, set } = Object.getOwnPropertyDescriptor(builtIn, key)!;
      for (const member of [value, get, set] as unknown[]) if (typeof member === 'function') Object.freeze(member);
    }
    Object.freeze(builtIn);
  }
}

const CHANGES_OF_RE2: Change[] = [
  // RE2 takes patterns of a million instructions; compiling one takes seconds and 300 MB.
  ['static MAX_SIZE = 1398101;', 'static MAX_SIZE = 10000;'],
  // Lines end as in ECMA-262. RE2 knows the line feed only, and cannot look ahead for the others.
  ...['r1', 'r2'].map((rune): Change => [
    `if (${rune} === 10)`,
    `if (${rune} === 10 || ${rune} === 13 || ${rune} === 0x2028 || ${rune} === 0x2029)`,
  ]),
];

const re2Source = (): string =>
  `(function () { const module = { exports: {} }, exports = module.exports;
${changed(readFileSync(createRequire(import.meta.url).resolve('re2js'), 'utf8'), CHANGES_OF_RE2)}
return module.exports.RE2JS; })()`;

/** No error of this realm leaves it. */
function inRe2(source: string, flags: string): string {
  try {
    return `=${matchInRe2(source, flags)}`;
  } catch (error) {
    return error instanceof RangeError ? 'its groups are nested too deeply' : (error as Error).message;
  }
}

/**
 * Compiles the scripts once and returns a function that opens realms.
 * @param onSteps called with the number of steps every 10,000 steps, synchronously
 */
export function prepareRealms(onSteps: (steps: number) => void): () => Realm {
  const languageScript = new Script(languageSource(), { filename: 'jsonata' });
  const parseJsonScript = new Script(`(${parseJson})`, { filename: 'parse-json' });
  const patternsScript = new Script(`(${makePatterns})`, { filename: 'patterns' });
  const jsonTextScript = new Script(`(${makeJsonText})`, { filename: 'json-text' });
  const keepExpressionsScript = new Script(`(${keepExpressions})`, { filename: 'kept-expressions' });
  const findUnknownNameScript = new Script(`(${findUnknownName})`, { filename: 'unknown-names' });
  const evaluatorScript = new Script(`(${makeEvaluator})`, { filename: 'evaluator' });
  const freezeScript = new Script(`(${freezeBuiltIns})()`, { filename: 'freeze' });
  const runScript = new Script('void evaluator.run()', { filename: 'run' });
  let re2Script: Script | undefined;
  const host: Host = {
    reportSteps: REPORT_STEPS,
    onSteps,
    byteLength: (text) => Buffer.byteLength(text),
    base64Of: (binary) => Buffer.from(binary, 'latin1').toString('base64'),
    binaryOf: (base64) => Buffer.from(base64, 'base64').toString('latin1'),
    invalidOutputAt,
    inRe2,
  };

  return () => {
    // The realm has a queue of microtasks of its own, which is empty when runInContext returns: no work of one
    // evaluation goes on during another.
    const context = createContext(constants.DONT_CONTEXTIFY, {
      microtaskMode: 'afterEvaluate',
      codeGeneration: { strings: false, wasm: false },
    });
    const compiled = <T>(script: Script): T => script.runInContext(context) as T;
    const loadRe2 = () => compiled<typeof RE2JS>((re2Script ??= new Script(re2Source(), { filename: 're2js' })));
    const parse = compiled<typeof parseJson>(parseJsonScript);
    const language = compiled<(parse: typeof parseJson) => Language>(languageScript)(parse);
    const evaluator = compiled<typeof makeEvaluator>(evaluatorScript)({
      language,
      parseJson: parse,
      keepExpressions: compiled<typeof keepExpressions>(keepExpressionsScript),
      makePatterns: compiled<MakePatterns>(patternsScript),
      makeJsonText: compiled<MakeJsonText>(jsonTextScript),
      findUnknownName: compiled<typeof findUnknownName>(findUnknownNameScript),
      loadRe2,
      host,
    });
    Object.assign(context, { language, evaluator } satisfies { language: Language; evaluator: Evaluator });
    freezeScript.runInContext(context);
    return {
      context,
      check: (source) => evaluator.check(source),
      evaluate(source, argsText, limits) {
        evaluator.prepare(source, argsText, limits);
        runScript.runInContext(context);
        return { ...evaluator.result() };
      },
    };
  };
}

/** @returns the realm of an organization, in which no other organization's expression is ever evaluated */
export function keepRealms(openRealm: () => Realm): (organizationId: string) => Realm {
  const realms = new Map<string, Realm>();
  return (organizationId) => {
    const realm = realms.get(organizationId) ?? openRealm();
    realms.delete(organizationId);
    realms.set(organizationId, realm);
    if (realms.size > KEPT_REALMS) realms.delete(realms.keys().next().value!);
    return realm;
  };
}
