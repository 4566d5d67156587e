import type { EvaluationLimits } from '../../../src/runtimes/runners/evaluation.ts';
import { prepareRealms } from '../../../src/runtimes/expression/realm.ts';

const LIMITS: EvaluationLimits = { wallMs: 60_000, maxSteps: 5_000, outputBytes: 10_000 };
const openRealm = prepareRealms(() => undefined);
const evaluate = (source: string, args: unknown = {}, limits: Partial<EvaluationLimits> = {}) =>
  openRealm().evaluate(source, JSON.stringify(args), { ...LIMITS, ...limits });

/** Small in memory, with 2^60 paths through it. */
const OBJECTS = '$reduce([1..60], function($x, $y) { {"a": $x, "b": $x} }, {})';
const ARRAYS = '$reduce([1..60], function($x, $y) { [[$x], [$x]] }, [])';

describe('a built-in function', () => {
  it.each([
    ['=', `${OBJECTS} = ${OBJECTS}`],
    ['in', '[1..300][$ in [-9999..0]]'],
    ['&', `${OBJECTS} & ""`],
    ['.**', `$count(${ARRAYS}.**)`],
    ['.*', `{"a": ${ARRAYS}}.*`],
    ['.name', `(${ARRAYS}).a`],
    ['$string', `$string(${OBJECTS})`],
    ['$boolean', `$boolean(${ARRAYS})`],
    ['$keys', `$keys(${ARRAYS})`],
    ['$lookup', `$lookup(${ARRAYS}, "a")`],
    ['$spread', `$spread(${ARRAYS})`],
    ['$distinct', '$distinct($map([1..500], function($x) { {"a": $x} }))'],
    ['$append', '$reduce([1..400], function($x, $y) { ($append($x, 1); $x) }, [1..90000])'],
    ['$map with a built-in function', '$map([1..50000], $exists)'],
    ['$match', '$match(t, /a/)', 'a'.repeat(8_000)],
    ['$replace', '$replace(t, /a/, "b")', 'a'.repeat(8_000)],
    ['$split', '$split(t, /a/)', 'a'.repeat(8_000)],
  ])('takes steps for the values that it visits: %s', (_name, source, t = '') => {
    expect(evaluate(source, { t })).toEqual({
      outcome: 'failed',
      message: 'The expression takes more than 5000 steps',
      steps: 5_000,
    });
  });

  it.each([
    ['$contains', '$contains(t, p)'],
    ['$substringBefore', '$substringBefore(t, p)'],
    ['$substringAfter', '$substringAfter(t, p)'],
    ['$split', '$split(t, p)'],
    ['$replace', '$replace(t, p, "")'],
  ])('takes steps for a search of texts, and refuses one that takes long: %s', (_name, source) => {
    const search = (characters: number) =>
      evaluate(`$exists(${source})`, {
        t: 'a'.repeat(10 * characters),
        p: `${'a'.repeat(characters / 2)}b${'a'.repeat(characters / 2)}`,
      });
    const [few, many] = [search(1_000), search(4_000)];
    expect([few.outcome, many.outcome]).toEqual(['succeeded', 'succeeded']);
    expect(few.steps).toBeGreaterThan(100);
    expect(many.steps / few.steps).toBeGreaterThan(10);
    expect(search(8_000)).toMatchObject({
      outcome: 'failed',
      message: expect.stringContaining('too long to search one in the other (D3144'),
    });
  });

  it('stops at the limit of time by itself', () => {
    expect(evaluate(`${OBJECTS} = ${OBJECTS}`, {}, { wallMs: 100, maxSteps: 1e9 }).outcome).toBe('timed_out');
  });

  it.each([
    ['$sort', (n: number) => `$count($sort($reverse([1..${n}])))`],
    ['$distinct', (n: number) => `$count($distinct([1..${n}]))`],
    ['$spread', (n: number) => `$count($spread($map([1..${n}], function($x) { {"a": $x} })))`],
  ])('takes steps in proportion to the length of an array: %s', (_name, source) => {
    const [few, many] = [4_000, 16_000].map((n) => evaluate(source(n), {}, { maxSteps: 1e6 }));
    expect([few!.outcome, many!.outcome]).toEqual(['succeeded', 'succeeded']);
    expect(many!.steps / few!.steps).toBeLessThan(6);
  });

  it('sorts and compares as before', () => {
    const source = `{
      "stable": $sort(a, function($l, $r) { $l.k > $r.k }).v,
      "by": a^(>k).v,
      "distinct": $distinct([1, "1", true, null, 1, "1", true, null, {"a": 1}, {"a": 1}, [1], [1], 0, -0]),
      "spread": $spread([{"a": 1, "b": 2}, {"c": 3}])
    }`;
    const a = [
      { k: 2, v: 'a' },
      { k: 1, v: 'b' },
      { k: 2, v: 'c' },
      { k: 1, v: 'd' },
    ];
    const result = evaluate(source, { a });
    expect(JSON.parse((result as { outputText: string }).outputText)).toEqual({
      stable: ['b', 'd', 'a', 'c'],
      by: ['a', 'c', 'b', 'd'],
      distinct: [1, '1', true, null, { a: 1 }, [1], 0],
      spread: [{ a: 1 }, { b: 2 }, { c: 3 }],
    });
  });

  it.each([
    ['a range at which adding one changes nothing', '[1e20..1e20]', '[100000000000000000000]'],
    ['letters of an infinite number', '$formatInteger(1e308 * 10, "A")', '""'],
    ['an exponent of an infinite number', '$formatNumber(1e308 * 10, "0e0")', '"Infinitye0"'],
    ['names that can be divided in many ways', '$exists($toMillis(t, "[MN][MN][MN][MN][MN][MN][MN]"))', 'false'],
    ['digits that can be divided in many ways', '$exists($toMillis(d, "[f][f][f][f][f][f]x[f]"))', 'false'],
  ])('ends for %s', (_what, source, outputText) => {
    const args = { t: `${'a'.repeat(200)}1`, d: '1'.repeat(200) };
    expect(evaluate(source, args)).toMatchObject({ outcome: 'succeeded', outputText });
  });

  it.each([
    ['choices', `(function($a)<(s]*([s]*)*[n)>{1})(${'"a",'.repeat(60)} {})`],
    ['repetitions', `(function($a)<x+x+x+x+x+x+x+n>{1})(${'"a",'.repeat(200)} "b")`],
  ])('checks arguments against %s in linear time', (_what, source) => {
    expect(evaluate(source)).toMatchObject({ outcome: 'failed', message: expect.stringContaining('T0410') });
  });

  it.each([
    ['a wide year', '$fromMillis(0, "[Y,400000000]")', 'at most 100'],
    ['a long picture of a date', '$fromMillis(0, p)', '256 characters'],
    ['a long picture of an integer', '$formatInteger(1, p)', '256 characters'],
    ['a long picture of a number', '$formatNumber(1, p)', '256 characters'],
    ['a long text for a large pattern', '$contains(p, /(?:a?b?){300}(?:x|y)$/)', 'too long for the size'],
    ['a text that is too long for the output', '$reduce([1..26], function($x, $y) { $x & $x }, "x")', 'larger than'],
    [
      'base64 that V8 would keep outside of its heap',
      '$count([1..150].$base64encode($reduce([1..21], function($a, $b) { $a & $a }, "abcdefgh")))',
      'at most 500000',
    ],
    ['reading such base64', '$length($base64decode($join([p, p, p, p, p, p])))', 'at most 500000'],
    [
      'arrays that grow by a part of $append',
      '$reduce([1..40], function($x, $y) { $append(?, $x)($x) }, [1])',
      'D2015',
    ],
  ])('refuses %s', (_what, source, message) => {
    const result = evaluate(source, { p: '0'.repeat(100_000) });
    expect(result).toMatchObject({ outcome: 'failed', message: expect.stringContaining(message) });
  });

  it('checks its arguments when it is partially applied', () => {
    for (const source of [
      '$base64encode(?)({"length": 1e9})',
      '$length(?)(5)',
      '$max(?)({"length": 1e9})',
      '$join(?, ",")([[1]])',
    ])
      expect([source, evaluate(source)]).toEqual([
        source,
        expect.objectContaining({ message: expect.stringMatching(/T0410|T0412/) }),
      ]);
    expect(
      evaluate('[$pad(?, 3)("a"), $substring(?, 1)("abc"), $sort(?)([2, 1]), $uppercase(?)("a"), $exists(?)(1)]'),
    ).toMatchObject({ outputText: '["a  ","bc",1,2,"A",true]' });
  });
});
