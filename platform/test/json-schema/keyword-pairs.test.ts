import { Validator, type SchemaDraft } from '@cfworker/json-schema';
import { DIALECTS, pairs, VALUES, whole, type Dialect } from './keyword-pairs.ts';
import { compile } from './schemas.ts';

/** Where a pair can stand. ajv makes other code for what may fail, and for what it executes more than once. */
const PLACES: ((pair: object) => object)[] = [
  (pair) => ({ allOf: [pair] }),
  (pair) => ({ anyOf: [pair, { enum: ['never'] }] }),
  (pair) => ({ oneOf: [{ enum: ['never'] }, pair] }),
  (pair) => ({ not: pair }),
  (pair) => ({ allOf: [{ $ref: '#/properties/pair' }], properties: { pair } }),
  (pair) => ({ if: pair, then: true, else: false }),
  (pair) => ({ if: true, then: pair }),
];
const SINCE_7 = 5;

/** Each violation of a list names the item. */
const eachOf = (pair: object): object => ({ items: { not: { not: pair } } });
/** Of the other validator, which reads what draft-06 has as draft-07. */
const VERSIONS: Record<Dialect, SchemaDraft> = {
  'draft-04': '4',
  'draft-06': '7',
  'draft-07': '7',
  '2019-09': '2019-09',
  '2020-12': '2020-12',
};

/** The code for these two is that for the others, too, so of the others it takes fewer in CI. */
const everyNth = (dialect: Dialect): number =>
  ['draft-07', '2020-12'].includes(dialect) || process.env['PROPERTY_RUNS'] ? 1 : 4;

describe.each(DIALECTS)('in %s, each keyword is checked beside each other one', (dialect) => {
  const places = /draft-0[46]/.test(dialect) ? PLACES.slice(0, SINCE_7) : PLACES;
  // These together are refused in 2020-12; what they mean in 2019-09, the other validator does not know.
  const accepted = pairs(dialect)
    .filter(([, pair]) => !('contains' in pair && 'unevaluatedItems' in pair))
    .filter((_, i) => i % everyNth(dialect) === 0);

  it('as a validator by other authors says, at the top and in a branch', () => {
    const verdicts = { true: 0, false: 0 };
    for (const [i, [name, pair]] of accepted.entries()) {
      for (const make of [(plain: object) => plain, places[i % places.length]!]) {
        const schema = whole(dialect, make(pair));
        const [ours, reference] = [compile(schema), new Validator(schema, VERSIONS[dialect])];
        for (const value of VALUES) {
          const { valid } = reference.validate(value);
          verdicts[`${valid}`]++;
          const found = ours.validate(value).length === 0;
          if (found !== valid) throw new Error(`${name}: ${JSON.stringify([schema, value])} is ${valid}`);
        }
      }
    }
    expect(Math.min(verdicts.true, verdicts.false)).toBeGreaterThan(2_000);
  });

  it('for each item of a list, whatever the one before it was', () => {
    for (const [name, pair] of accepted.filter((_, i) => i % 4 === 0)) {
      const reference = new Validator(whole(dialect, pair), VERSIONS[dialect]);
      const wrong = VALUES.flatMap((value, i) => (reference.validate(value).valid ? [] : [`/${i}`])).slice(0, 20);
      const paths = compile(whole(dialect, eachOf(pair)))
        .validate(VALUES)
        .map(({ path }) => path);
      expect([name, pair, paths]).toEqual([name, pair, wrong]);
    }
  });
});
