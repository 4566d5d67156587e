import fc from 'fast-check';
import { fairCache } from 'platform/core/fair-cache.ts';

describe('a cache that organizations share', () => {
  it('keeps what an organization within its share has put into it, whatever another one does', () => {
    const cache = fairCache<number>(1_000);
    for (let i = 0; i < 5; i++) cache.set('small', `${i}`, i, 100);
    for (let i = 0; i < 10_000; i++) cache.set('large', `${i}`, i, 1 + (i % 1_500));
    expect([0, 1, 2, 3, 4].map((i) => cache.get('small', `${i}`))).toEqual([0, 1, 2, 3, 4]);
  });

  it('gives all of it to an organization that is alone, and takes back what another one needs', () => {
    const cache = fairCache<number>(1_000);
    for (let i = 0; i < 10; i++) cache.set('a', `${i}`, i, 100);
    expect(cache.get('a', '0')).toBe(0);
    cache.set('b', 'x', -1, 100);
    expect([cache.get('b', 'x'), cache.get('a', '0'), cache.get('a', '1')]).toEqual([-1, 0, undefined]);
  });

  it('removes what an organization used least recently', () => {
    const cache = fairCache<number>(300);
    cache.set('a', '1', 1, 100);
    cache.set('a', '2', 2, 100);
    cache.set('a', '3', 3, 100);
    cache.get('a', '1');
    cache.set('a', '4', 4, 100);
    expect(['1', '2', '3', '4'].map((key) => cache.get('a', key))).toEqual([1, undefined, 3, 4]);
  });

  it('keeps nothing that is larger than the whole', () => {
    const cache = fairCache<number>(100);
    cache.set('b', 'small', 1, 50);
    cache.set('a', 'large', 2, 101);
    expect([cache.get('a', 'large'), cache.get('b', 'small')]).toEqual([undefined, 1]);
  });

  it('never shows an organization an entry of another one', () => {
    const cache = fairCache<string>(100);
    cache.set('a', 'same', 'of a', 1);
    expect(cache.get('b', 'same')).toBeUndefined();
  });

  it('is never over its size, and takes from no organization within its share', () => {
    const organizations = ['a', 'b', 'c', 'd'];
    const entry = fc.record({
      organization: fc.constantFrom(...organizations),
      key: fc.integer({ min: 0, max: 30 }).map(String),
      bytes: fc.integer({ min: 1, max: 400 }),
    });
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 200 }), (entries) => {
        const cache = fairCache<number>(1_000);
        const put = new Map<string, Map<string, number>>(organizations.map((name) => [name, new Map()]));
        const present = (name: string): number[] =>
          [...put.get(name)!.keys()].flatMap((key) => cache.get(name, key) ?? []);
        const sum = (bytes: number[]): number => bytes.reduce((total, one) => total + one, 0);
        for (const { organization, key, bytes } of entries) {
          const before = new Map(organizations.map((name) => [name, present(name)]));
          cache.set(organization, key, bytes, bytes);
          put.get(organization)!.set(key, bytes);
          expect(sum(organizations.flatMap(present))).toBeLessThanOrEqual(1_000);
          for (const name of organizations) {
            if (name !== organization && sum(before.get(name)!) <= 1_000 / organizations.length)
              expect(present(name).toSorted()).toEqual(before.get(name)!.toSorted());
          }
        }
      }),
      { numRuns: 100 },
    );
  });
});
