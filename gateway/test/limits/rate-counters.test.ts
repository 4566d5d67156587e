import fc from 'fast-check';
import { makeRateBoard } from '../../../services/auth/src/rates/board.ts';
import { makeRateCounters, type RateCounters } from '../../src/limits/rate-counters.ts';
import type { RateStore } from '../../src/limits/rate-store.ts';
import { closedInTheEnd } from 'platform/service/test-end.ts';
import { log } from '../fixture.ts';

const MAX = 600;
const LIMIT = { key: 'requests:server_token:a', max: MAX };
const RUNS = Number(process.env.RATE_RUNS ?? 100);

/** Gateways that share their counts by a board that can be stopped, with a clock that only the test moves. */
function gatewaysOf(count: number) {
  const state = { nowMs: 29_000_000 * 60_000, board: makeRateBoard(), isDown: false, calls: 0 };
  const clock = { now: () => state.nowMs };
  const storeOf = (id: string): RateStore => ({
    async share(window, counts) {
      state.calls++;
      if (state.isDown) throw new Error('down');
      const { board, nowMs } = state;
      return {
        nowMs,
        gateways: board.gateways(id, nowMs),
        epoch: board.epoch,
        others: counts.map(({ key, ...count }) => board.share(id, window, key, count)),
      };
    },
    close: () => undefined,
  });
  const gateways = Array.from({ length: count }, (_, i) => makeRateCounters(storeOf(`gateway-${i}`), clock, log));
  closedInTheEnd(() => gateways.forEach((gateway) => gateway.close()));
  const shareAll = async (): Promise<void> => {
    for (const gateway of gateways) await gateway.share();
  };
  return { state, gateways, shareAll };
}
const admitted = (gateway: RateCounters, requests: number): number => {
  let count = 0;
  for (let i = 0; i < requests; i++) if (!gateway.admit([LIMIT])) count++;
  return count;
};

it('one gateway admits exactly the limit in a minute, and again as time passes', async () => {
  const { state, gateways } = gatewaysOf(1);
  const [gateway] = gateways as [RateCounters];
  expect(admitted(gateway, 2 * MAX)).toBe(MAX);
  expect(gateway.left(LIMIT)).toBe(0);
  expect(gateway.admit([LIMIT])).toMatchObject({ limit: LIMIT, retryAfterS: 61 });
  state.nowMs += 90_000;
  expect(admitted(gateway, 2 * MAX)).toBe(MAX / 2);
});

it('a request that one limit refuses counts under no other', () => {
  const { gateways } = gatewaysOf(1);
  const [gateway] = gateways as [RateCounters];
  const other = { key: 'other', max: 1_000 };
  expect(admitted(gateway, MAX)).toBe(MAX);
  expect(gateway.admit([other, LIMIT])?.limit).toBe(LIMIT);
  expect(gateway.left(other)).toBe(1_000);
});

it('two gateways together admit the limit within 10 %, however the requests fall on them', async () => {
  await fc.assert(
    fc.asyncProperty(
      // for each 20 ms, the requests that come to each gateway
      fc.array(fc.tuple(fc.nat(120), fc.nat(120)), { minLength: 40, maxLength: 60 }),
      fc.constantFrom<[number, number]>([1, 1], [1, 0], [0, 1], [9, 1]),
      async (turns, [first, second]) => {
        const { state, gateways, shareAll } = gatewaysOf(2);
        await shareAll();
        await shareAll();
        let demand = 0;
        let sum = 0;
        for (const [a, b] of turns) {
          const counts = [first * a, second * b];
          for (const [i, gateway] of gateways.entries()) sum += admitted(gateway, counts[i] as number);
          demand += counts[0]! + counts[1]!;
          state.nowMs += 20;
          await shareAll();
        }
        expect(sum).toBeLessThanOrEqual(1.1 * MAX);
        expect(sum).toBeGreaterThanOrEqual(Math.min(demand, 0.9 * MAX) * (demand < MAX ? 0.9 : 1));
      },
    ),
    { numRuns: RUNS },
  );
});

it('a client that moves to another gateway finds its requests counted there', async () => {
  const { gateways, shareAll } = gatewaysOf(2);
  const [one, other] = gateways as [RateCounters, RateCounters];
  await shareAll();
  await shareAll();
  let sum = 0;
  for (let turn = 0; turn < 20; turn++) {
    sum += admitted(one, 50);
    await shareAll();
  }
  expect(sum).toBeGreaterThanOrEqual(0.9 * MAX);
  for (let turn = 0; turn < 20; turn++) {
    sum += admitted(other, 50);
    await shareAll();
  }
  expect(sum).toBeLessThanOrEqual(1.1 * MAX);
});

it('while the store of counts is down, each gateway admits its share, and afterwards they share again', async () => {
  const { state, gateways, shareAll } = gatewaysOf(2);
  await shareAll();
  await shareAll();
  state.isDown = true;
  await shareAll();
  state.nowMs += 4_000;
  expect(gateways.map((gateway) => admitted(gateway, MAX))).toEqual([MAX / 2, MAX / 2]);
  state.isDown = false;
  await shareAll();
  gateways[0]?.count([LIMIT]);
  await shareAll();
  expect(gateways.map((gateway) => admitted(gateway, MAX))).toEqual([0, 0]);
});

it('what the store did not take is told again, without a further request', async () => {
  const { state, gateways, shareAll } = gatewaysOf(2);
  const [one, other] = gateways as [RateCounters, RateCounters];
  await shareAll();
  await shareAll();
  state.isDown = true;
  expect(admitted(one, 100)).toBe(100);
  await one.share();
  state.isDown = false;
  await one.share();
  other.count([LIMIT]);
  await other.share();
  expect(other.left(LIMIT)).toBe(MAX - 101);
});

it('a store that has forgotten everything is told again', async () => {
  const { state, gateways, shareAll } = gatewaysOf(2);
  const [one, other] = gateways as [RateCounters, RateCounters];
  await shareAll();
  expect(admitted(one, 100)).toBe(100);
  await shareAll();
  state.board = makeRateBoard();
  await shareAll();
  await shareAll();
  other.count([LIMIT]);
  await shareAll();
  expect(other.left(LIMIT)).toBe(MAX - 101);
});

it('the clock of the store counts, not that of the gateway', async () => {
  const state = { aheadMs: 45_000, nowMs: 29_000_000 * 60_000 + 30_000 };
  const store: RateStore = {
    share: async () => ({ nowMs: state.nowMs + state.aheadMs, gateways: 1, epoch: '', others: [] }),
    close: () => undefined,
  };
  const counters = makeRateCounters(store, { now: () => state.nowMs }, log);
  closedInTheEnd(() => counters.close());
  await counters.share();
  expect(counters.now()).toBe(state.nowMs + 45_000);
});

it('requests cause no call of the store: calls are made in the background, many requests in one', async () => {
  const { state, gateways } = gatewaysOf(1);
  const [gateway] = gateways as [RateCounters];
  for (let i = 0; i < 10_000; i++) gateway.admit([{ key: `token-${i % 100}`, max: MAX }]);
  expect(state.calls).toBe(0);
  await gateway.share();
  expect(state.calls).toBe(1);
});

it('keeps the counts of at most 100,000 keys', () => {
  const { gateways } = gatewaysOf(1);
  const [gateway] = gateways as [RateCounters];
  gateway.count([LIMIT]);
  for (let i = 0; i < 100_000; i++) gateway.count([{ key: `hostile-${i}`, max: 1 }]);
  expect(gateway.left(LIMIT)).toBe(MAX);
  expect(gateway.left({ key: 'hostile-99999', max: 1 })).toBe(0);
});
