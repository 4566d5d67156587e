import { Validator } from '@cfworker/json-schema';
import { DRAFTS, pairs, VALUES, whole } from './keyword-pairs.ts';
import { compile } from './schemas.ts';

/** Where a pair can stand. ajv makes other code for what may fail, and for what it executes more than once. */
const PLACES: ((pair: object) => object)[] = [
  (pair) => ({ allOf: [pair] }),
  (pair) => ({ anyOf: [pair, { const: 'never' }] }),
  (pair) => ({ oneOf: [{ const: 'never' }, pair] }),
  (pair) => ({ not: pair }),
  (pair) => ({ if: pair, then: true, else: false }),
  (pair) => ({ if: true, then: pair }),
  (pair) => ({ $ref: '#/properties/pair', properties: { pair } }),
];
/** Each violation of a list names the item. */
const eachOf = (pair: object): object => ({ items: { not: { not: pair } } });

describe.each(DRAFTS)('in %s, each keyword is checked beside each other one', (draft) => {
  const version = draft === 'draft-07' ? '7' : '2020-12';
  // contains and unevaluatedItems together are refused.
  const accepted = pairs(draft).filter(([, pair]) => !('contains' in pair && 'unevaluatedItems' in pair));

  it('as a validator by other authors says, at the top and in a branch', () => {
    const verdicts = { true: 0, false: 0 };
    for (const [i, [name, pair]] of accepted.entries()) {
      for (const make of [(plain: object) => plain, PLACES[i % PLACES.length]!]) {
        const schema = whole(draft, make(pair));
        const [ours, reference] = [compile(schema), new Validator(schema, version)];
        for (const value of VALUES) {
          const { valid } = reference.validate(value);
          verdicts[`${valid}`]++;
          const found = ours.validate(value).length === 0;
          if (found !== valid) throw new Error(`${name}: ${JSON.stringify([schema, value])} is ${valid}`);
        }
      }
    }
    expect(Math.min(verdicts.true, verdicts.false)).toBeGreaterThan(10_000);
  });

  it('for each item of a list, whatever the one before it was', () => {
    for (const [name, pair] of accepted.filter((_, i) => i % 4 === 0)) {
      const reference = new Validator(whole(draft, pair), version);
      const wrong = VALUES.flatMap((value, i) => (reference.validate(value).valid ? [] : [`/${i}`]));
      const paths = compile(whole(draft, eachOf(pair))).validate(VALUES).map(({ path }) => path); // prettier-ignore
      expect([name, pair, paths]).toEqual([name, pair, wrong]);
    }
  });
});
