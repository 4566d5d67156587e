import { checkExpression } from '../../src/runtimes/expression.ts';

describe('the check of an expression', () => {
  it('accepts what can be evaluated', () => {
    expect(checkExpression('{ "total": $sum(items.(price * quantity)) }')).toEqual([]);
  });

  it.each([
    ['a source that does not parse', '{ "a": '],
    ['a source nested without end', '('.repeat(30_000)],
    ['a pattern with look-ahead', '$match(a, /(?=a)b/)'],
    ['a pattern with a back-reference', '$match(a, /(a)\\1/)'],
    ['a source of 100,000 characters', '1 + '.repeat(25_000) + '1'],
  ])('refuses %s with one sentence', (_what, source) => {
    expect(checkExpression(source)).toEqual([{ path: '', message: expect.any(String) }]);
  });
});
