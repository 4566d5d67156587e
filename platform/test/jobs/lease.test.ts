import { jest } from '@jest/globals';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { acquireLease, clearLeases, keepLease, LEASES, releaseLease, renewLease } from 'platform/jobs/lease.ts';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import { update, type OpenStore, type PlatformStore } from 'platform/store/store.ts';

describe('a lease', () => {
  let folder: string;
  let open: OpenStore;
  let platformStore: PlatformStore;
  let nowMs: number;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'lease-'));
    open = await openSqliteStore(join(folder, 'a.sqlite'), [LEASES]);
    nowMs = 1_000_000;
    platformStore = { ...open.platformStore, now: async () => nowMs };
  });
  afterEach(async () => {
    await open.close();
    rmSync(folder, { recursive: true });
  });
  const acquire = (owner: string) => acquireLease(platformStore, 'sweep', owner, 1000);

  it('has one owner until it expires, and a higher epoch with the next owner', async () => {
    expect(await acquire('a')).toEqual({ name: 'sweep', owner: 'a', epoch: 1, until: 1_001_000 });
    nowMs += 999;
    expect(await acquire('b')).toBeUndefined();
    nowMs += 1;
    expect(await acquire('b')).toEqual({ name: 'sweep', owner: 'b', epoch: 2, until: 1_002_000 });
    expect(await acquire('a')).toBeUndefined();
  });
  it('goes to one of several processes that acquire it at once, whether new or expired', async () => {
    const race = async () =>
      (await Promise.all(['a', 'b', 'c', 'd'].map(acquire))).filter((lease) => lease !== undefined);
    expect(await race()).toHaveLength(1);
    nowMs += 1000;
    await releaseLease(platformStore, (await race())[0]!);
    const [winner, ...others] = await race();
    expect(others).toEqual([]);
    expect(winner!.until).toBe(nowMs + 1000);
  });
  it('can be renewed by its owner, even after it expired, as long as nobody took it', async () => {
    const lease = (await acquire('a'))!;
    nowMs += 5000;
    expect(await renewLease(platformStore, lease, 1000)).toEqual({ ...lease, until: 1_006_000 });
    expect(await acquire('a')).toEqual({ ...lease, until: 1_006_000 });
    nowMs += 1000;
    const taken = await acquire('b');
    expect(await renewLease(platformStore, lease, 1000)).toBeUndefined();
    await releaseLease(platformStore, lease);
    expect(await platformStore.findOne(LEASES, { _id: 'sweep' })).toEqual({
      _id: 'sweep',
      owner: 'b',
      epoch: taken!.epoch,
      until: taken!.until,
    });
  });
  it('is not taken from an owner that renews it between the look of another one and its write', async () => {
    const lease = (await acquire('a'))!;
    nowMs += 1000;
    const late: PlatformStore = {
      ...platformStore,
      async apply(ops) {
        await renewLease(platformStore, lease, 1000);
        return platformStore.apply(ops);
      },
    };
    expect(await acquireLease(late, 'sweep', 'b', 1000)).toBeUndefined();
    expect(await acquire('a')).toMatchObject({ epoch: lease.epoch, until: nowMs + 1000 });
  });
  it('that is released or cleared can be acquired at once, with a higher epoch', async () => {
    await releaseLease(platformStore, (await acquire('a'))!);
    expect((await acquire('b'))!.epoch).toBe(2);
    await clearLeases(platformStore);
    expect((await acquire('c'))!.epoch).toBe(3);
  });

  describe('kept during long work', () => {
    const signalled = (signal: AbortSignal) =>
      new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    it('is renewed', async () => {
      const lease = (await acquireLease(platformStore, 'sweep', 'a', 6_000))!;
      nowMs += 7;
      let renewed = () => {};
      const first = new Promise<void>((resolve) => (renewed = resolve));
      const watched: PlatformStore = { ...platformStore, apply: (ops) => platformStore.apply(ops).finally(renewed) };
      jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'performance', 'Date'] });
      try {
        const keeper = keepLease(watched, lease, 6_000);
        jest.advanceTimersByTime(2_000);
        await first;
        expect(await keeper.end()).toEqual({ ...lease, until: lease.until + 7 });
        expect(keeper.signal.aborted).toBe(false);
      } finally {
        jest.useRealTimers();
      }
    });
    it('is renewed at the next attempt when the store did not answer one', async () => {
      const lease = (await acquireLease(platformStore, 'sweep', 'a', 6_000))!;
      let attempts = 0;
      let answered = (): void => undefined;
      const flaky: PlatformStore = {
        ...platformStore,
        apply: (ops) =>
          (++attempts === 2 ? Promise.reject(new Error('down')) : platformStore.apply(ops)).finally(() => answered()),
      };
      const nextAttempt = async (lost: Promise<void>): Promise<void> => {
        const { promise, resolve } = Promise.withResolvers<void>();
        answered = resolve;
        nowMs += 2_000;
        jest.advanceTimersByTime(2_000);
        await Promise.race([promise, lost]);
        await new Promise(setImmediate);
      };
      jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'performance', 'Date'] });
      try {
        const keeper = keepLease(flaky, lease, 6_000);
        for (let attempt = 0; attempt < 3; attempt++) await nextAttempt(signalled(keeper.signal));
        expect(keeper.signal.aborted).toBe(false);
        expect(await keeper.end()).toEqual({ ...lease, until: lease.until + 6_000 });
      } finally {
        jest.useRealTimers();
      }
    });
    it('aborts the signal when another owner took it', async () => {
      const keeper = keepLease(platformStore, (await acquireLease(platformStore, 'sweep', 'a', 60))!, 60);
      const lost = signalled(keeper.signal);
      await platformStore.apply([update(LEASES, { _id: 'sweep' }, { set: { owner: 'b' }, increment: { epoch: 1 } })]);
      await lost;
      expect(await keeper.end()).toBeUndefined();
    });
    it('aborts the signal when it could not be renewed before it expired', async () => {
      const down: PlatformStore = { ...platformStore, apply: () => Promise.reject(new Error('down')) };
      const keeper = keepLease(down, (await acquireLease(platformStore, 'sweep', 'a', 30))!, 30);
      await signalled(keeper.signal);
      expect(await keeper.end()).toBeUndefined();
    });
  });
});
