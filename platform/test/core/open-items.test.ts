import fc from 'fast-check';
import { makeOpenItems } from 'platform/core/open-items.ts';

/** Ids that share places, such as those that are 1,024 apart, and others. */
const id = fc.oneof(
  fc.integer({ min: 0, max: 5 }).map((n) => 7 + n * 1_024),
  fc.integer({ min: 1, max: 2 ** 32 - 1 }),
);
const step = fc.record({ kind: fc.constantFrom('set', 'delete', 'get'), id });

it('open items are found, counted and listed as in a Map', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const calls = makeOpenItems<{ n: number }>();
      const model = new Map<number, { n: number }>();
      for (const [n, { kind, id }] of steps.entries()) {
        if (kind === 'delete') expect(calls.delete(id)).toBe(model.delete(id));
        if (kind === 'set' && !model.has(id)) {
          calls.set(id, { n });
          model.set(id, { n });
        }
        expect(calls.get(id)).toEqual(model.get(id));
        expect(calls.size).toBe(model.size);
      }
      const byId = ([one]: readonly [number, unknown], [other]: readonly [number, unknown]): number => one - other;
      const listed: [number, { n: number }][] = [];
      calls.forEach((item, id) => listed.push([id, item]));
      expect(listed.toSorted(byId)).toEqual([...model].toSorted(byId));
    }),
    { numRuns: 1_000 },
  );
});

it('open items may be deleted while they are visited', () => {
  const calls = makeOpenItems<string>();
  const ids = [1, 1_025, 2_049, 2];
  for (const id of ids) calls.set(id, `call ${id}`);
  const visited: number[] = [];
  calls.forEach((_item, id) => {
    visited.push(id);
    calls.delete(id);
  });
  expect(visited.toSorted((one, other) => one - other)).toEqual([1, 2, 1_025, 2_049]);
  expect(calls.size).toBe(0);
});
