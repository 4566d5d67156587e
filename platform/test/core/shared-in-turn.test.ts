import { setImmediate as nextTurn } from 'node:timers/promises';
import { sharedInTurn, type SharedInTurn } from '../../src/core/shared-in-turn.ts';

describe('reads of one turn', () => {
  let reads: string[];
  let share: SharedInTurn<string>;
  beforeEach(() => {
    reads = [];
    share = sharedInTurn<string>();
  });
  const read = (key: string, organizationId = 'o') =>
    share(organizationId, [key], async () => (reads.push(key), `${key} ${reads.length}`));

  it('of the same are one, however many microtasks later they are asked for', async () => {
    const late = async () => {
      for (let i = 0; i < 20; i++) await Promise.resolve();
      return read('a');
    };
    expect(await Promise.all([read('a'), read('b'), late(), read('a')])).toEqual(['a 1', 'b 2', 'a 1', 'a 1']);
  });

  it('of two organizations are two, whatever they ask for', async () => {
    expect(await Promise.all([read('a'), read('a', 'other'), read('a')])).toEqual(['a 1', 'a 2', 'a 1']);
  });

  it('are not remembered for the next turn', async () => {
    await read('a');
    await nextTurn();
    await read('a');
    const answered = Promise.withResolvers<void>();
    process.nextTick(() => read('a').then(() => answered.resolve()));
    await answered.promise;
    expect(reads).toEqual(['a', 'a', 'a']);
  });

  it('fail together, and the next turn tries again', async () => {
    const fail = () => share('o', ['a'], () => Promise.reject(new Error('no')));
    const results = await Promise.allSettled([fail(), fail(), read('a')]);
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
    await nextTurn();
    expect(await read('a')).toBe('a 1');
  });
});
