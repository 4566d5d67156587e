import fc from 'fast-check';
import { runInContext, type Context } from 'node:vm';
import type { Language } from '../../../src/runtimes/expression/evaluator.ts';
import { keepRealms, prepareRealms, type Realm } from '../../../src/runtimes/expression/realm.ts';

const LIMITS = { wallMs: 30_000, maxSteps: 2_000, outputBytes: 10_000 };
/** Random expressions. */
const RUNS = 200 * Number(process.env['HOSTILE_COUNT'] ?? 1);
/** Without it, a failure prints the seed. */
const SEED = process.env['HOSTILE_SEED'];
const openRealm = prepareRealms(() => undefined);
const outcome = (realm: Realm, source: string, args: unknown = {}): unknown => {
  const result = realm.evaluate(source, JSON.stringify(args), LIMITS);
  return result.outcome === 'succeeded' ? JSON.parse(result.outputText) : result;
};

const NATIVES = (
  'sum count max min average string substring substringBefore substringAfter lowercase uppercase length trim pad match ' +
  'contains replace split join formatNumber formatBase formatInteger parseInteger number floor ceil round abs sqrt power ' +
  'random boolean not map zip filter single reduce sift keys lookup append exists spread merge reverse each error assert ' +
  'type sort shuffle distinct base64encode base64decode encodeUrlComponent encodeUrl decodeUrlComponent decodeUrl eval ' +
  'toMillis fromMillis clone now millis'
).split(' ');

/** What gives something else every time. */
const NEVER_THE_SAME = /\$(random|shuffle|now|millis)\b/;

/** Expressions that tell whether a built-in function, a limit or the data of an evaluation is another than it was. */
const PROBES: [source: string, expected: unknown][] = [
  ['[$sum([1, 2, 4]), $sqrt(16), $count([1, 1]), $max([1, 3]), $round(2.5)]', [7, 4, 2, 3, 2]],
  ['[$uppercase("aß"), $trim("  a  "), $join(["a", "b"], "-"), $pad("a", 3, "*")]', ['ASS', 'a', 'a-b', 'a**']],
  ['[$map([1, 2], function($v) { $v * 2 }), $filter([1, 2, 3], function($v) { $v > 1 })]', [2, 4, 2, 3]],
  [
    '[$sort([3, 1, 2]), $reverse([1, 2]), $distinct([1, 1]), $keys({"a": 1}), $spread({"a": 1})]',
    [1, 2, 3, 2, 1, 1, 'a', { a: 1 }],
  ],
  [
    '[$match("a1b22", /[0-9]+/).match, $replace("aa", /a/, "b"), $split("a,b", ","), $contains("abc", /b/)]',
    ['1', '22', 'bb', 'a', 'b', true],
  ],
  ['{"a": {"b": 1}} ~> |a|{"c": 2}, "b"|', { a: { c: 2 } }],
  [
    '[$substring(?, 1)("abc"), ($uppercase ~> $trim)(" a"), $base64encode("a"), $base64decode("YQ==")]',
    ['bc', 'A', 'YQ==', 'a'],
  ],
  [
    '[$fromMillis(0), $toMillis("1970-01-01T00:00:01Z"), $formatNumber(12.5, "0.00"), $type($sum)]',
    ['1970-01-01T00:00:00.000Z', 1000, '12.50', 'function'],
  ],
  ['$eval("1")', { outcome: 'failed', message: '$eval is not available', steps: 3 }],
  ['$exists($found) or $exists($args)', false],
  ['$', {}],
  [
    '($f := function($n) { $f($n + 1) }; $f(0))',
    { outcome: 'failed', message: 'The expression takes more than 2000 steps', steps: 2_000 },
  ],
];
const expectUnchanged = (realm: Realm): void => {
  for (const [source, expected] of PROBES) expect([source, outcome(realm, source)]).toEqual([source, expected]);
};

/** Expressions from the grammar, with a liking for functions in places where data is expected. */
const { expression: expressions } = fc.letrec<{ expression: string; function: string }>((tie) => {
  const e = tie('expression');
  const f = tie('function');
  const name = fc.constantFrom('f', 'g', 'x', 'sum', 'clone', 'map', 'args');
  const member = fc.constantFrom(
    ...['implementation', 'signature', 'environment', 'base', 'options', 'bind', 'body', 'arguments', 'apply', 'thunk'],
    ...[
      '_jsonata_lambda',
      '_jsonata_function',
      '__proto__',
      'constructor',
      'then',
      'next',
      'push',
      'length',
      'sequence',
    ],
    ...['tupleStream', 'outerWrapper', 'args', 'a', 'toString', 'validate', 'definition', 'token', 'position', 'input'],
  );
  const quoted = member.map((text) => JSON.stringify(text));
  const text = (strings: TemplateStringsArray, ...parts: fc.Arbitrary<string>[]): fc.Arbitrary<string> =>
    fc.tuple(...parts).map((drawn) => strings.map((string, i) => string + (drawn[i] ?? '')).join(''));
  return {
    function: fc.oneof(
      { maxDepth: 4, depthIdentifier: 'f' },
      fc.constantFrom(...NATIVES).map((native) => `$${native}`),
      text`$${name}`,
      fc.constantFrom('($r := /a+/; $r)', '($r := /(x)|y/i; $r)'),
      text`function($x, $y) { ${e} }`,
      text`function($f) { $f(${e}) }`,
      text`(${f} ~> ${f})`,
      text`${f}(?, ${e})`,
      text`${f}(?)`,
      text`|${e}|${e}|`,
      text`|${e}|{${quoted}: ${e}}, [${quoted}, ${quoted}]|`,
    ),
    expression: fc.oneof(
      { maxDepth: 5, depthIdentifier: 'e' },
      fc.constantFrom('$', '$$', '1', '"a"', 'null', 'true', '[1..3]', 'args', 'args.a', '{}', '*', '**'),
      f,
      text`(${f})(${e})`,
      text`(${f})(${e}, ${f})`,
      text`(${e} ~> ${f})`,
      text`(${e} ~> |${f}|{${quoted}: ${e}}, ${quoted}|)`,
      text`($${name} := ${e}; ${e})`,
      text`(${e}).${quoted}`,
      text`$lookup(${f}, ${quoted})`,
      text`$each(?, ${f})(${e})`,
      text`$sift(${e}, ${f})`,
      text`$map(${e}, ${f})`,
      text`$map([${f}, ${f}], ${f})`,
      text`$reduce([${e}, ${e}], ${f})`,
      text`$merge([${e}, $spread(${f})])`,
      text`{${quoted}: ${f}, "b": ${e}}`,
      text`(${e}){${quoted}: ${e}}`,
      text`[${e}, ${e}]`,
      text`(${e})[${e}]`,
      text`(${e})^(${e})`,
      text`(${e})@$${name}.(${e})`,
      text`(${e} ? ${e} : ${e})`,
      text`(${e} = ${e})`,
    ),
  };
});

/** Shows what expressions can hold: every kind of function and of value, and results in between. */
const HOLDS_EVERYTHING = `(
  $natives := [${NATIVES.map((name) => `$${name}`).join(', ')}];
  $lambda := function($x)<n:n> { $x + 1 };
  $pattern := /a/;
  $closures := [$lambda, $substring(?, 1), $lambda(?), $uppercase ~> $trim, |$|{"a": 1}|, $pattern];
  $matches := [$pattern("banana"), $match("banana", /a/), $map([1, 2], $string), $each({"a": 1}, $lookup)];
  $tuples := [items@$i#$p.{"i": $i, "p": $p}, items.b.%, items^(>b), items{$string(b): $}, $shuffle([1, 2]), $zip([1], [2])];
  $given := (function($f) { [$f, {"f": $f}] })($sum);
  [$natives, $closures, $matches, $tuples, $given, $$, $now(), $spread({"a": $sum}), $ ~> |items|{"c": $sum}|]
)`;

/** The result and the context of everything that is evaluated. */
function everything(context: Context): unknown[] {
  const script = `(() => {
    const held = [];
    const expression = language.jsonata(${JSON.stringify(HOLDS_EVERYTHING)}, { stack: 1000, sequence: 1000 });
    expression.assign(Symbol.for('jsonata.__evaluate_exit'), (_expr, input, _frame, result) => held.push(input, result));
    expression.evaluate({ items: [{ b: 1 }, { b: 2 }] }).catch((error) => held.push('failed', error));
    return held;
  })()`;
  const held = runInContext(script, context) as unknown[];
  if (held.includes('failed')) throw held.at(-1);
  return held;
}

/** All objects in reach: by members, prototypes and accessors. `data` is what consists of plain objects and arrays. */
function reach(context: Context, roots: unknown[]): { all: Set<object>; data: Set<object> } {
  const { language, Object: RealmObject } = context as unknown as { language: Language; Object: typeof Object };
  const all = new Set<object>();
  const data = new Set<object>();
  const open: [value: unknown, isData: boolean][] = roots.map((root) => [root, true]);
  for (let next = open.pop(); next; next = open.pop()) {
    const [value, fromData] = next;
    if ((typeof value !== 'object' && typeof value !== 'function') || value === null || all.has(value)) continue;
    const prototype: unknown = Object.getPrototypeOf(value);
    const isPlain = Array.isArray(value) || prototype === null || prototype === RealmObject.prototype;
    const isData = fromData && isPlain && !language.isFunction(value);
    all.add(value);
    if (isData) data.add(value);
    open.push([prototype, false]);
    for (const key of Reflect.ownKeys(value)) {
      const { value: member, get, set } = Object.getOwnPropertyDescriptor(value, key)!;
      open.push([member, isData], [get, false], [set, false]);
    }
  }
  return { all, data };
}

describe('an evaluation', () => {
  it.each([
    [
      'replaces a built-in function',
      '(function($f){ {} ~> |$sum|{"implementation":$f},["signature"]| })(function($x){42})',
    ],
    [
      'deletes the mark of a closure',
      '($f := function($x){$x}; {} ~> |$f|{},["_jsonata_lambda"]|; $f.environment.base)',
    ],
    ['changes what $spread shows of a function', '{} ~> |$spread($sqrt).signature|{"definition":"<x:x>"}|'],
    ['changes what $merge copies of a function', '$merge($spread($sqrt)).implementation(4)'],
    ['changes its input by a $clone of its own', '($clone := function($x){$x}; $ ~> |$|{"a":1}|)'],
    ['changes a sequence', '([1..3] ~> |$|{"push":1,"length":0}|)'],
    ['changes a prototype', '{"a":{}} ~> |a|{"__proto__":{"b":1},"constructor":1,"toString":2}|'],
    ['changes a matched text', '{} ~> |$match("a", /a/)|{"match":"b"}|'],
    ['reads a closure through $each without a signature', '$each(?, function($v, $k) { $k })($sum)'],
    ['reads a closure through $lookup', '$lookup($sum, "implementation")'],
    ['keeps a function beyond its end', '$found := $sum'],
    [
      'rejects a promise',
      '($f := function($yes, $no) { $no({"code": "D1012"}) }; (function($then) { {"then": $then} })($f))',
    ],
  ])('that %s leaves nothing behind', (_what, source) => {
    const realm = openRealm();
    outcome(realm, source, { args: 'secret' });
    expectUnchanged(realm);
  });

  it.each([
    ['$spread($sum).implementation'],
    ['$keys($sum)'],
    ['$sum.*'],
    ['$sum.**[$type($) != "function"]'],
    ['$lookup($sum, "signature")'],
    ['(function($x) { $x }).environment'],
    ['(function($x) { $x }).*'],
    ['$merge($spread(function($x) { $x })).body'],
    ['($pattern := /a/; $pattern.*)'],
    ['(|$|{}|).implementation'],
    ['$substring(?, 1).environment'],
  ])('sees no member of a function: %s', (source) => {
    expect(outcome(openRealm(), source)).toMatchObject({
      outcome: 'failed',
      message: expect.stringMatching(/no output|not JSON|T0410|T0412/),
    });
  });

  it.each([
    ['a function', { _jsonata_function: true, implementation: 1 }, '$type(args)', 'object'],
    [
      'a closure',
      { _jsonata_lambda: true, arguments: [], body: { type: 'variable', value: 'x' } },
      '$type(args)',
      'object',
    ],
    ['a stream of tuples', { tupleStream: true, '@': 1, x: 'theirs' }, '($x := "mine"; args[$x = "mine"].x)', 'theirs'],
    ['a stream of tuples in a filter', { tupleStream: true }, '$type(args[true])', 'object'],
    ['a stream of tuples in a group', { tupleStream: true, x: 'theirs' }, '($x := "mine"; args{"a": $x}).a', 'mine'],
    ['the wrapper of an input', { outerWrapper: true, a: 1 }, 'args.($.a)', 1],
    ['an array', { length: 1, 0: { x: 'theirs' }, x: 'mine' }, '[args][0].x', 'mine'],
    ['an empty array', { length: 0, x: 'mine' }, '[args][0].x', 'mine'],
    [
      'a placeholder',
      { type: 'operator', value: '?' },
      '($f := function($a, $b) { $a.value & $b }; $f(args, ?)("b"))',
      '?b',
    ],
  ])('takes data for data that looks like %s', (_what, args, source, expected) => {
    expect(outcome(openRealm(), source, { args })).toEqual(expected);
  });

  it('names kinds of data in its own messages, never a value', () => {
    for (const source of [
      '-secret',
      '$sqrt(-number)',
      'secret > number',
      '{number: 1}',
      '[secret, number]^($)',
      '$number(secret)',
      '{} ~> |$|$$.secret|',
      '{"a": 1} ~> |$|{}, $$.number|',
      '$toMillis(secret)',
      '$formatBase(number, 9999)',
      '$power(number, 9e9)',
      '$sum(secret)',
      '{secret: 1, secret & "": 2}',
      '[1..number * 1e9]',
      '$decodeUrl("%" & secret)',
      '$fromMillis(0, "[" & secret)',
      '$formatNumber(number, secret & secret)',
      '$formatInteger(1, "*" & $substring(secret, 2))',
    ]) {
      const result = outcome(openRealm(), source, { secret: 'S3CRET', number: 48_151_623 });
      expect([source, result]).toEqual([source, expect.objectContaining({ outcome: 'failed' })]);
      expect(JSON.stringify(result)).not.toMatch(/CRET|48151623/);
    }
  });

  it('is not a promise, whatever its members are', () => {
    const thenable = '(function($f) { {"then": $f, "a": 1} })(function($yes, $no) { ($yes(1); $error("unhandled")) })';
    expect(outcome(openRealm(), `(${thenable}).a`)).toBe(1);
    expect(outcome(openRealm(), '(function($f) { {"then": $f, "a": 1} })($sum).a')).toBe(1);
    expect(outcome(openRealm(), '{"then": /a/, "a": 1}.a')).toBe(1);
  });

  it('counts the steps that a branch takes after another one failed', () => {
    const loop = '($f := function($n) { $f($n + 1) }; $f(0))';
    expect(outcome(openRealm(), `[$error("first"), ${loop}]`)).toEqual({
      outcome: 'failed',
      message: 'first',
      steps: 2_000,
    });
  });

  it('shares no object with another realm', () => {
    const [one, other] = [openRealm(), openRealm()].map(({ context }) => reach(context, everything(context)).all);
    expect(one!.size).toBeGreaterThan(200);
    expect([...one!].filter((value) => other!.has(value))).toEqual([]);
    expect(one).not.toContain(Object.prototype);
  });

  it('has a realm of its organization, which is kept for the four that ran last', () => {
    const realmOf = keepRealms(openRealm);
    const first = ['a', 'b', 'c', 'd'].map(realmOf);
    expect(new Set(first).size).toBe(4);
    expect(['a', 'b', 'c', 'd'].map(realmOf)).toEqual(first);
    realmOf('e');
    expect(['b', 'c', 'd'].map(realmOf)).toEqual(first.slice(1));
    expect(realmOf('a')).not.toBe(first[0]);
  });

  it('reaches nothing that can be written but data of its own', () => {
    const { context } = openRealm();
    const { all, data } = reach(context, everything(context));
    expect([...all].filter((value) => !data.has(value) && !Object.isFrozen(value))).toEqual([]);
  });

  it(`leaves nothing behind, whatever it does (${RUNS} expressions)`, () => {
    const realm = openRealm();
    fc.assert(
      fc.property(expressions, (source) => {
        const args = '{"args":{"a":[1,{"b":"x"}],"f":null}}';
        const first = realm.evaluate(source, args, LIMITS);
        expectUnchanged(realm);
        if (!NEVER_THE_SAME.test(source)) expect(realm.evaluate(source, args, LIMITS)).toEqual(first);
      }),
      { numRuns: RUNS, ...(SEED !== undefined && { seed: Number(SEED) }) },
    );
  });
});
