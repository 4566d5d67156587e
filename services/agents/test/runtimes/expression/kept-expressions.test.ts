import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { keepExpressions, type Expression } from '../../../src/runtimes/expression/kept-expressions.ts';
import { prepareRealms } from '../../../src/runtimes/expression/realm.ts';

const LIMITS = { wallMs: 30_000, maxSteps: 2_000, outputBytes: 10_000 };
const openRealm = prepareRealms(() => undefined);

describe('an expression', () => {
  /** How often each source was compiled, by the length of the source. */
  let compiled: number[];
  let expressionOf: (source: string) => Expression;
  beforeEach(() => {
    compiled = [];
    expressionOf = keepExpressions((source) => {
      compiled.push(source.length);
      return { expression: {} as Expression, treeBytes: 0 };
    });
  });

  it('is compiled once, however often it is evaluated', () => {
    for (let run = 0; run < 1_000; run++) for (const source of ['a', 'bb']) expressionOf(source);
    expect(compiled).toEqual([1, 2]);
    expect(expressionOf('a')).toBe(expressionOf('a'));
  });

  it('is forgotten when others take its room, those that were evaluated last excepted', () => {
    const sources = [10_000, 10_001, 10_002].map((length) => 'x'.repeat(length));
    for (const source of sources) expressionOf(source);
    expressionOf(sources[0]!);
    expressionOf('x'.repeat(10_003));
    for (const source of [...sources.slice(2), sources[0]!]) expressionOf(source);
    expect(compiled).toEqual([10_000, 10_001, 10_002, 10_003]);
    expressionOf(sources[1]!);
    expect(compiled).toEqual([10_000, 10_001, 10_002, 10_003, 10_001]);
  });

  it('that is larger than the room is compiled each time and displaces none', () => {
    expressionOf('a');
    for (let run = 0; run < 2; run++) expressionOf('x'.repeat(40_000));
    expressionOf('a');
    expect(compiled).toEqual([1, 40_000, 40_000]);
  });

  it('takes as much room as its syntax tree, however short its source is', () => {
    let count = 0;
    const large = keepExpressions(() => ({ expression: {} as Expression, treeBytes: ++count * 1_500_000 }));
    for (const source of ['a', 'b', 'b', 'a', 'large', 'large', 'a']) large(source);
    // b displaces nothing; what follows does not fit beside a, or at all.
    expect(count).toBe(4);
  });

  it('does not stay in great numbers, however short', () => {
    for (let round = 0; round < 2; round++) for (let n = 1; n <= 100; n++) expressionOf('x'.repeat(n));
    expect(compiled).toHaveLength(200);
  });

  it('that cannot be compiled is not kept', () => {
    const failing = keepExpressions(() => {
      throw new Error('no');
    });
    for (let run = 0; run < 2; run++) expect(() => failing('a')).toThrow('no');
  });
});

it('expressions whose parts the parser copies at each level do not fill the heap of a runner', () => {
  const realm = openRealm();
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const heapBytes = (): number => {
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  const nested = (inner: string): string => Array.from({ length: 12 }).reduce<string>((left) => `(${left}?:b)`, inner);
  const evaluate = (name: string): unknown => realm.evaluate(nested(name), '{}', LIMITS);
  evaluate('a');
  const before = heapBytes();
  for (let n = 0; n < 20; n++)
    expect(evaluate(`a${n}`)).toMatchObject({ message: 'The expression produced no output' });
  expect(heapBytes() - before).toBeLessThan(15_000_000);
});

describe('an evaluation of an expression that is compiled already', () => {
  it.each([
    ['variables', '($n := $exists($n) ? "kept" : "new"; $n)', {}],
    ['functions', '($f := $exists($f) ? function() { "kept" } : function() { "new" }; $f())', {}],
    ['closures', '($add := function($x) { function($y) { $x + $y } }; [1, 2] ~> $map($add(a)))', { a: 1 }],
    ['signatures', '(function($x)<n:n> { $x + 1 })(a)', { a: 1 }],
    ['tail calls', '($f := function($n) { $n > 50 ? $n : $f($n + 1) }; $f(a))', { a: 1 }],
    ['patterns', '$match(a, /b+/).match & $replace(a, /b/, "c") & $contains(a, /B/i)', { a: 'abbab' }],
    ['tuples', 'items@$i#$p[$p < 2].{"p": $p, "i": $i.b, "up": %.items[0].b}', { items: [{ b: 1 }, { b: 2 }] }],
    ['transforms', '$ ~> |items|{"c": b * 2}, "b"|', { items: [{ b: 1 }, { b: 2 }] }],
    ['groups', 'items{$string(b): $sum(b)}', { items: [{ b: 1 }, { b: 1 }] }],
    ['orders', '[items^(>b).b, items[-1].b, items.b[]]', { items: [{ b: 1 }, { b: 2 }] }],
    ['partial application', '($f := $substring(?, 1); a ~> $f ~> $uppercase)', { a: 'abc' }],
    ['chains', '(a ? a : "none") & (b ?: "other") & (c ?? "third")', { a: 'abc' }],
    ['errors', '$error("no " & a)', { a: 'abc' }],
    ['limits', '($f := function($n) { $f($n + 1) }; $f(0))', {}],
  ])('is the same as the first one, with the same steps: %s', (_what, source, args) => {
    const realm = openRealm();
    const evaluate = (given: object) => realm.evaluate(source, JSON.stringify(given), LIMITS);
    const first = evaluate(args);
    for (const between of [{}, { a: [1, 2], items: { b: 'x' } }]) evaluate(between);
    expect([evaluate(args), evaluate(args)]).toEqual([first, first]);
    expect(openRealm().evaluate(source, JSON.stringify(args), LIMITS)).toEqual(first);
    expect(first).not.toMatchObject({ message: 'The expression failed' });
  });

  it('sees its own time and its own input', () => {
    const realm = openRealm();
    const millis = () => Number((realm.evaluate('$millis()', '{}', LIMITS) as { outputText: string }).outputText);
    const first = millis();
    while (Date.now() <= first);
    expect(millis()).toBeGreaterThan(first);
    const outputs = [1, 2].map((a) => realm.evaluate('[$.a, $$.a]', JSON.stringify({ a }), LIMITS));
    expect(outputs).toMatchObject([{ outputText: '[1,1]' }, { outputText: '[2,2]' }]);
  });
});
