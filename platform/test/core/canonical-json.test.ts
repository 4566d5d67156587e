import fc from 'fast-check';
import { canonicalJson } from 'platform/core/canonical-json.ts';

const reversed = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, member]) => [name, reversed(member)]),
  );
};

describe('canonical JSON', () => {
  it('sorts members by UTF-16 code units, as RFC 8785 shows', () => {
    expect(
      canonicalJson(JSON.parse('{"\u20ac":1,"\\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}')),
    ).toBe('{"\\r":2,"1":4,"\u0080":6,"\u00f6":7,"\u20ac":1,"\ud83d\ude00":5,"\ufb33":3}');
  });
  it('is the same text for any order of members, and parses to the same value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const json = JSON.parse(JSON.stringify(value));
        expect(canonicalJson(reversed(json))).toBe(canonicalJson(json));
        expect(JSON.parse(canonicalJson(json))).toEqual(json);
      }),
    );
  });
  it('is different for values of different types', () => {
    expect(
      new Set([1, '1', [1], { 1: 1 }, null, 'null', true, 'true', {}, []].map((value) => canonicalJson(value))).size,
    ).toBe(10);
  });
});
