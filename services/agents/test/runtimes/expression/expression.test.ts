import type { EvaluationLimits } from '../../../src/runtimes/runners/evaluation.ts';
import { checkExpression } from '../../../src/runtimes/expression/runtime.ts';
import { prepareRealms } from '../../../src/runtimes/expression/realm.ts';

const LIMITS: EvaluationLimits = { wallMs: 10_000, maxSteps: 1_000_000, outputBytes: 10_000 };
const reported: number[] = [];
const openRealm = prepareRealms((steps) => reported.push(steps));
const evaluate = (source: string, args: unknown = {}, limits: Partial<EvaluationLimits> = {}) =>
  openRealm().evaluate(source, JSON.stringify(args), { ...LIMITS, ...limits });

describe('checkExpression', () => {
  it('accepts sources that can be evaluated', () => {
    for (const source of [
      '{ "total": $sum(items.(price * quantity)) }',
      '$match(a, /(\\w+)\\s/i)',
      'a.b.%.c',
      'x'.repeat(65_536),
      '($f := function($a) { $a + $$.b }; $map(list, $f) ~> $sum)',
      'orders@$o.products#$i[$o.id = id and $i < 3].{ "at": $i, "n": $reduce([1], λ($sum, $n) { $sum + $n }) }',
      '$now() & $millis() & $sum(?)($)',
      '$match(a, /[a-z]+[\\u4e00-\\u9fff]/i)',
    ])
      expect([source, checkExpression(source)]).toEqual([source, undefined]);
  });

  it.each([
    ['that does not parse', '{ "a": ', '^Expected "}" before end of expression'],
    ['nested too deeply', '('.repeat(30_000), 'nested too deeply'],
    ['with a pattern that looks ahead', '$match(a, /(?=a)b/)', 'linear time'],
    ['with a pattern that refers back', 'a[$match(b, /(a)\\1/)].c', 'linear time'],
    ['of over 65,536 characters', 'x'.repeat(65_537), 'at most 65536 characters'],
    ['whose ?: is nested', `${'('.repeat(40)}a${' ?: 1)'.repeat(40)}`, 'nested too deeply'],
    ['whose ?? is nested', `${'('.repeat(40)}a${' ?? 1)'.repeat(40)}`, 'nested too deeply'],
    ['with a pattern of a million instructions', `$match(a, /(?:${'a?'.repeat(640)}){1000}/)`, 'too large'],
    ['with a group that is repeated often', '$match(a, /(?:ab){2000}/)', 'more than 1000 times'],
    ['with a high count', '$match(a, /a{20000}/)', 'repeats more than 10000 times'],
    ['with many patterns', `[${'$contains(a, /[^\\pL\\PL]/i), '.repeat(500)}1]`, 'at most 4000 characters together'],
    ['with an unknown function', '{ "a": $summ(items) }', '\\$summ is no function of JSONata.*at character 12'],
    ['with an unknown variable', '($x := 1; $x + $y)', '\\$y is a variable that the expression does not define'],
    ['with a partly applied unknown function', '($f := $half(?); $f(1))', '\\$half is no function'],
    ['with a long signature', `function($a)<${'s'.repeat(200)}>{1}`, 'at most 200 characters'],
  ])('rejects a source %s, with one sentence', (_what, source, message) => {
    expect(checkExpression(source)).toMatch(new RegExp(message));
  });
});

describe('an evaluation', () => {
  it.each<[string, unknown, string]>([
    [
      '{ "t": $sum(items.(p * q)) }',
      {
        items: [
          { p: 2, q: 3 },
          { p: 1, q: 1 },
        ],
      },
      '{"t":7}',
    ],
    ['$', { a: '😀"', b: [null, true, {}, [], 1.5e300] }, '{"a":"😀\\"","b":[null,true,{},[],1.5e+300]}'],
    ['null', {}, 'null'],
    ['$match("ab12cd345", /[0-9]+/).match', {}, '["12","345"]'],
    ['$replace("John Smith", /(\\w+)\\s(\\w+)/, "$2, $1")', {}, '"Smith, John"'],
    ['$split("a1b22c", /[0-9]+/)', {}, '["a","b","c"]'],
    [
      '$match("abc", function($s) { { "match": "a", "start": 0, "end": 1, "groups": [], "next": function() { $none } } })',
      {},
      '{"match":"a","index":0,"groups":[]}',
    ],
    ['$contains("ABC", /^b$/im) or $contains("ABC", /b/i)', {}, 'true'],
    ['[$pad("x", 3), $pad("x", -3, "#"), $pad("xyz", 2), $pad("😀", 3, "ab")]', {}, '["x  ","##x","xyz","😀ab"]'],
  ])('evaluates %s to JSON text', (source, args, outputText) => {
    expect(evaluate(source, args)).toEqual({ outcome: 'succeeded', outputText, steps: expect.any(Number) });
  });

  it('takes the same number of steps every time', () => {
    const [one, other] = [1, 2].map(() => evaluate('$sum([1..100].($ * 2))'));
    expect(one).toEqual(other);
    expect(one!.steps).toBeGreaterThan(300);
  });

  it.each([
    ['an error raised by its author', '$error("no such customer")', /^no such customer$/],
    ['an assertion that does not hold', '$assert(1 = 2, "not equal")', /^not equal$/],
    [
      'a type error',
      '"a" + 1',
      /^The left side of the "\+" operator must evaluate to a number \(T2001 at character 5\)$/,
    ],
    ['a type error in a tail call', '($f := function() { $min(2, 3) }; $f())', /min.*\(T0410 at character 24\)$/],
    ['a source that does not parse', '(', /S0203/],
    ['no output', 'missing.path', /produced no output/],
    ['a function as output', '{ "f": function($x) { $x } }', /something that is not JSON/],
    ['a built-in function as output', '[$sum]', /something that is not JSON/],
    ['a pattern that needs back-tracking', '$match("aab", /(?=a)b/)', /linear time/],
    ['a pattern that matches nothing', '$match("aaa", /x*/)', /zero length/],
    ['a transform of its arguments', '{} ~> |$$|{"a": 1}|', /must select objects of the value/],
    ['a transform that deletes from its arguments', '{} ~> |$$|{}, "a"|', /must select objects of the value/],
    ['$eval', '$eval("1")', /\$eval is not available/],
    ['endless recursion', '($f := function($n) { 1 + $f($n) }; $f(0))', /Stack overflow/],
    ['a sequence without bounds', '[1..10000000]', /maximum sequence length/],
    [
      'arrays that grow by doubling',
      '$reduce([1..40], function($x, $y) { $append($x, $x) }, [1])',
      /maximum sequence length/,
    ],
    ['padding without bounds', '$length($pad("x", 500000000))', /\$pad makes at most/],
    [
      'texts that grow by doubling',
      '$length($reduce([1..40], function($x, $y) { $x & $x }, "xxxxxxxx"))',
      /exceeds a limit of the runtime/,
    ],
    [
      'an output that is small in memory and huge as text',
      '$reduce([1..16], function($x, $y) { { "a": $x, "b": $x } }, 1)',
      /larger than 10000 bytes/,
    ],
  ])('fails at %s, with a message without a stack trace', (_what, source, message) => {
    const result = evaluate(source, { a: 1 });
    expect(result).toEqual({ outcome: 'failed', message: expect.stringMatching(message), steps: expect.any(Number) });
    expect(JSON.stringify(result)).not.toMatch(/jsonata\.js|at \w+ \(/);
  });

  it('evaluates a pattern that would hang a back-tracking matcher', () => {
    expect(evaluate(`$contains("${'a'.repeat(5_000)}!", /^(a+)+$/)`)).toMatchObject({
      outcome: 'succeeded',
      outputText: 'false',
    });
  });

  it('fails at exactly its limit of steps', () => {
    const { steps } = evaluate('$sum([1..100].($ * 2))');
    expect(evaluate('$sum([1..100].($ * 2))', {}, { maxSteps: steps })).toMatchObject({
      outcome: 'succeeded',
      steps,
    });
    expect(evaluate('$sum([1..100].($ * 2))', {}, { maxSteps: steps - 1 })).toEqual({
      outcome: 'failed',
      message: `The expression takes more than ${steps - 1} steps`,
      steps: steps - 1,
    });
  });

  it('fails at exactly its limit of output, in bytes', () => {
    expect(evaluate('"é€"', {}, { outputBytes: 7 })).toMatchObject({ outcome: 'succeeded' });
    expect(evaluate('"é€"', {}, { outputBytes: 6 })).toMatchObject({
      outcome: 'failed',
      message: 'The output is larger than 6 bytes',
    });
  });

  it('times out at its limit of time, and reports its steps meanwhile', () => {
    reported.length = 0;
    const result = evaluate('($f := function($n) { $f($n + 1) }; $f(0))', {}, { wallMs: 2_000, maxSteps: 1e12 });
    expect(result.outcome).toBe('timed_out');
    expect(reported).toEqual(Array.from({ length: Math.floor(result.steps / 10_000) }, (_, i) => (i + 1) * 10_000));
    expect(reported.length).toBeGreaterThan(0);
  });

  it('cannot reach prototypes or globals', () => {
    for (const source of [
      '$constructor',
      '$lookup($, "__proto__")',
      'constructor',
      '$lookup($, "constructor")',
      '$process',
      '$globalThis',
      '$toString',
    ]) {
      expect([source, evaluate(source)]).toEqual([
        source,
        expect.objectContaining({ message: 'The expression produced no output' }),
      ]);
    }
    evaluate('{ "__proto__": { "polluted": 1 } }');
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });
});
