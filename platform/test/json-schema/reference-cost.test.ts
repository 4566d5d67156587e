import { compile, many, object, rejection } from './schemas.ts';

/** V8 gives all texts of the same length beyond 16,383 one hash, so a map with such keys compares each with each. */
const LONG = 'x'.repeat(40_000);
/** Few enough that each schema with all of these would be accepted for its rules. */
const COUNT = 700;
const numbered = (i: number): string => `a${String(i).padStart(4, '0')}`;

const millisOf = (work: () => void): number => {
  const start = performance.now();
  work();
  return performance.now() - start;
};

describe('what finds the parts of a schema costs as much as in an ordinary schema', () => {
  const ordinary = { properties: object(COUNT / 2, (i) => [numbered(i), { type: 'string', minLength: 1 }]) };

  it.each<[string, object]>([
    [
      'anchors below a long URI',
      { $id: `http://h/${LONG}`, $defs: object(COUNT, (i) => [numbered(i), { $anchor: numbered(i) }]) },
    ],
    [
      'URIs below a long one',
      { $id: `http://h/${LONG}/`, $defs: object(COUNT, (i) => [numbered(i), { $id: numbered(i) }]) },
    ],
    [
      'URIs that lead upwards from a long one',
      { $id: `http://h/${'a/'.repeat(20_000)}`, $defs: object(400, (i) => [numbered(i), { $id: `../${i}` }]) },
    ],
    [
      'names in draft-04',
      {
        $schema: 'http://json-schema.org/draft-04/schema#',
        id: `http://h/${LONG}`,
        definitions: object(COUNT, (i) => [numbered(i), { id: `#${numbered(i)}` }]),
      },
    ],
    ['members of a long name', { properties: { [LONG]: { properties: object(900, (i) => [numbered(i), true]) } } }],
    [
      'references below a long name',
      {
        $defs: { [LONG.slice(0, 16_000)]: { $id: 'r', ...zs(56) } },
        allOf: many(2, () => ({ allOf: many(150, () => ({ $ref: `r#${'/z'.repeat(56)}/q` })) })),
      },
    ],
  ])('%s', (_, schema) => {
    const isBounded = (times: [number, number]) => times[0] < 3 * times[1];
    let least: [number, number] = [Infinity, Infinity];
    for (let i = 0; i < 5 && !(i > 0 && isBounded(least)); i++) {
      const times = [schema, ordinary].map((each) => millisOf(() => void rejection(each)));
      least = [Math.min(least[0], times[0]!), Math.min(least[1], times[1]!)];
    }
    expect(isBounded(least) || least).toBe(true);
  });

  it('a URI has at most 2,000 characters', () => {
    expect(() => compile({ $id: `http://h/${'x'.repeat(1_991)}` })).not.toThrow();
    expect(rejection({ $id: `http://h/${'x'.repeat(1_992)}` })).toBe('/$id this URI has more than 2000 characters');
  });
});

/** A value under keywords that are unknown, so many levels deep. */
function zs(levels: number): object {
  return levels === 0 ? { q: true } : { z: zs(levels - 1) };
}
