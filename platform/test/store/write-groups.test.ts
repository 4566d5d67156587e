import { jest } from '@jest/globals';
import { setImmediate as turn } from 'node:timers/promises';
import { writeGroups, type GroupedWrite } from '../../src/store/write-groups.ts';

const write = (bytes = 1): GroupedWrite => ({ bytes });

describe('writes that share a batch', () => {
  beforeEach(() => jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'performance'] }));
  afterEach(() => jest.useRealTimers());

  /** Groups that note how many writes each batch has. */
  function notedGroups(waitMs?: () => number) {
    const batches: number[] = [];
    const add = writeGroups<GroupedWrite>(async (group) => void batches.push(group.length), waitMs);
    return { batches, add: (key: string, one: GroupedWrite, organizationId = 'o') => add(organizationId, key, one) };
  }

  it('are those of one turn and key when nothing is worth waiting for', async () => {
    const { batches, add } = notedGroups();
    await Promise.all([add('a', write()), add('a', write()), add('b', write())]);
    expect(batches).toEqual([2, 1]);
  });

  it('are those of one organization, whatever key another one gives', async () => {
    const { batches, add } = notedGroups();
    await Promise.all([add('a', write()), add('a', write(), 'other'), add('a', write())]);
    expect(batches).toEqual([2, 1]);
  });

  it('are also those of the turns that the first one waits for, and no write waits longer', async () => {
    let waitMs = 20;
    const { batches, add } = notedGroups(() => waitMs);
    const first = add('a', write());
    waitMs = 1_000;
    await turn();
    const second = add('a', write());
    jest.advanceTimersByTime(19);
    await turn();
    expect(batches).toEqual([]);
    jest.advanceTimersByTime(1);
    await Promise.all([first, second]);
    expect(batches).toEqual([2]);
  });
});
