import { setImmediate as nextTurn } from 'node:timers/promises';
import { ENTRIES_A_TURN, makeTurns } from 'platform/store/turns.ts';

/** Asks for so many pieces of work together. @returns whose pieces ran at once, in their order */
function atOnce(pieces: readonly [organizationId: string, entries?: number][], turnsOf = makeTurns()) {
  const ran: string[] = [];
  const all = Promise.all(pieces.map(([id, entries]) => turnsOf(id).inTurn(() => void ran.push(id), entries)));
  return { ran: [...ran], end: all.then(() => ran) };
}

describe('pieces of reads', () => {
  it('run at once up to what an organization may read in a turn of the loop, others wait for later turns', async () => {
    const third = ENTRIES_A_TURN / 3;
    const pieces = Array.from({ length: 5 }, (): [string, number] => ['A', third]);
    const { ran, end } = atOnce([...pieces, ['B', third]]);
    expect(ran).toEqual(['A', 'A', 'A', 'B']);
    expect((await end).sort()).toEqual(['A', 'A', 'A', 'A', 'A', 'B']);
  });

  it('that are large, or of unknown size, never run at once', async () => {
    const { ran, end } = atOnce([['A', ENTRIES_A_TURN + 1], ['A'], ['A', ENTRIES_A_TURN]]);
    expect(ran).toEqual(['A']);
    expect(await end).toHaveLength(3);
  });

  it('count by what they did cost', async () => {
    const { inTurn } = makeTurns()('A');
    const ran: number[] = [];
    const run = (n: number) => inTurn(() => void ran.push(n), ENTRIES_A_TURN, () => 1); // prettier-ignore
    const all = Promise.all([run(1), run(2), run(3)]);
    expect(ran).toEqual([1, 2, 3]);
    await all;
  });

  it('are counted anew in the next turn of the loop', async () => {
    const turnsOf = makeTurns();
    for (let turn = 0; turn < 3; turn++) {
      const { ran, end } = atOnce([['A', ENTRIES_A_TURN], ['A', 1]], turnsOf); // prettier-ignore
      expect(ran).toEqual(['A']);
      await end;
      await nextTurn();
    }
  });

  it('that wait are those of each organization in turn', async () => {
    const waiting = (id: string): [string][] => Array.from({ length: 3 }, () => [id]);
    const { end } = atOnce([...waiting('A'), ...waiting('B')]);
    expect(await end).toEqual(['A', 'B', 'A', 'B', 'A', 'B']);
  });

  it('of the platform run at once however many they are, unless they wait for a turn', async () => {
    const { ran, end } = atOnce([...Array.from({ length: 9 }, (): [string, number] => ['', ENTRIES_A_TURN]), ['']]);
    expect(ran).toHaveLength(9);
    expect(await end).toHaveLength(10);
  });
});

describe('large reads of another machine', () => {
  it('are few at once, of one organization half of them, and a failed one gives its place back', async () => {
    const turnsOf = makeTurns();
    const running: Record<string, number> = { A: 0, B: 0 };
    const most: Record<string, number> = { A: 0, B: 0 };
    let together = 0;
    const read = (id: string) =>
      turnsOf(id).inPlace(async () => {
        most[id] = Math.max(most[id]!, ++running[id]!);
        together = Math.max(together, running['A']! + running['B']!);
        await nextTurn();
        running[id]!--;
        throw new Error('lost');
      });
    const ofOne = await Promise.allSettled(Array.from({ length: 30 }, () => read('A')));
    expect(ofOne.every(({ status }) => status === 'rejected')).toBe(true);
    expect(most['A']).toBe(4);
    await Promise.allSettled(Array.from({ length: 60 }, (_, n) => read(n % 2 === 0 ? 'A' : 'B')));
    expect(most['B']).toBeGreaterThan(1);
    expect(together).toBeLessThanOrEqual(8);
    expect(running).toEqual({ A: 0, B: 0 });
  });

  it('of a neighbour begin before those of an organization that has asked for many', async () => {
    const turnsOf = makeTurns();
    let ended = 0;
    const many = Array.from({ length: 50 }, () =>
      turnsOf('A').inPlace(async () => {
        await nextTurn();
        ended++;
      }),
    );
    await turnsOf('B').inPlace(async () => undefined);
    expect(ended).toBe(0);
    await Promise.all(many);
  });
});
