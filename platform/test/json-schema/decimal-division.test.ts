import fc from 'fast-check';
import { conforms, many, messagesOf, TOO_COSTLY } from './schemas.ts';

/** The number as it is written, times 10^400. */
function scaled(number: number): bigint {
  const [, whole, fraction = '', exponent = '0'] = /^-?(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(number))!;
  return BigInt(whole! + fraction) * 10n ** BigInt(400 + Number(exponent) - fraction.length);
}
const isMultiple = (data: number, divisor: number): boolean => scaled(data) % scaled(divisor) === 0n;

describe('multipleOf', () => {
  it.each([
    [
      0.01,
      [894_784.94, 1_234_567.89, 19.99, 0.07, 4.35, 1.1, -8.2, 1e300, 0, -0],
      [0.300_000_000_000_000_04, 0.009_999_999_99, 19.995],
    ],
    [1, [3, -7, 1e300], [3.000_000_001, 0.5, 5e-324]],
    [100_000_000, [0, 300_000_000, 1e8, 1e22], [100_000_001, 99_999_999, 1]],
    [0.3, [0.9, 2.1, 3], [1, 0.000_012]],
    [3, [3e22, 9_007_199_254_740_990], [1e23, 9_007_199_254_740_991]],
    [1e-7, [1e21, 0.000_000_3], [1.5e-7]],
    [1e-300, [1e308, 1.797_693_134_862_315_7e308], [1e-301]],
    [5e-324, [1e308, 5e-324, 1], []],
    [1.797_693_134_862_315_7e308, [0, 1.797_693_134_862_315_7e308], [1e308, 1]],
    [0.123_456_789_012_345, [0.246_913_578_024_69, 0.370_370_367_037_035], [0.246_913_578_024_691]],
    [12_345_678_901_234_567_000, [24_691_357_802_469_134_000], [1e19]],
  ])('%d is decimal division of the numbers as they are written', (divisor, multiples, others) => {
    for (const value of multiples) expect([value, conforms({ multipleOf: divisor }, value)]).toEqual([value, true]);
    for (const value of others) expect([value, conforms({ multipleOf: divisor }, value)]).toEqual([value, false]);
  });

  it('agrees with exact arithmetic', () => {
    const digits = fc.oneof(fc.nat(20), fc.nat(1_000_000), fc.maxSafeNat());
    const decimal = fc.tuple(digits, fc.oneof(fc.integer({ min: -6, max: 6 }), fc.integer({ min: -330, max: 300 })));
    const positive = fc
      .oneof(
        decimal.map(([number, exponent]) => Number(`${number}e${exponent}`)),
        fc.double({ noNaN: true, noDefaultInfinity: true, min: 0 }),
      )
      .filter((number) => number > 0 && Number.isFinite(number));
    /** A multiple as somebody writes it, and what floating point makes of one. */
    const multiple = fc
      .tuple(positive, fc.nat(1_000_000))
      .chain(([divisor, times]) =>
        fc
          .constantFrom(divisor * times, Number((divisor * times).toPrecision(15)))
          .map((data) => [data, divisor] as const),
      );
    const any = fc.tuple(positive, positive);
    const verdicts = { true: 0, false: 0 };
    fc.assert(
      fc.property(fc.oneof(multiple, any), fc.boolean(), ([data, divisor], negative) => {
        fc.pre(Number.isFinite(data));
        const expected = isMultiple(data, divisor);
        verdicts[`${expected}`]++;
        expect(conforms({ multipleOf: divisor }, negative ? -data : data)).toBe(expected);
      }),
      { numRuns: Number(process.env['PROPERTY_RUNS'] ?? 2_000) },
    );
    expect(Math.min(verdicts.true, verdicts.false)).toBeGreaterThan(200);
  });

  it('is paid for by the numbers that need long division', () => {
    const schema = { items: { allOf: many(8, (i) => ({ multipleOf: 2 ** i * 5e-300 })) } };
    expect(messagesOf(schema, many(20_000, () => 1e308))).toEqual(TOO_COSTLY); // prettier-ignore
    expect(messagesOf({ items: { multipleOf: 0.01 } }, many(30_000, (i) => i / 100))).toEqual([]); // prettier-ignore
  });
});
