import { v7 } from 'uuid';
import { DAY_MS, HOUR_MS, type Clock } from 'platform/core/clock.ts';
import { newId } from 'platform/core/ids.ts';
import type { Author, LedgerRow, OpenLedger } from '../src/ledger/ledger.ts';
import { faultsOf } from './ledger-invariants.ts';

/** Every engine is opened with it. */
export const RETENTION_MS = 30 * DAY_MS;

/** One engine under test. */
export interface LedgerHarness {
  readonly opened: OpenLedger;
  /** Where there are two replicas: which of them `opened` is, 0 or 1. */
  turnTo?(replica: number): void;
  /** The engine's time in milliseconds. */
  nowMs(): number;
  /** Moves the engine's time on. */
  advance(ms: number): Promise<void>;
  /** Closes it and opens it again on the same data. */
  reopen(): Promise<void>;
  stop(): Promise<void>;
}

/** An engine whose time stands still between advances. `remove` takes away what it has left. */
export async function harnessOf(
  open: (clock: Clock) => Promise<OpenLedger>,
  remove: () => unknown,
): Promise<LedgerHarness> {
  let time = Date.now();
  const nowMs = (): number => time;
  const start = () => open({ now: nowMs });
  let opened = await start().catch(async (error: unknown) => {
    await remove();
    throw error;
  });
  return {
    get opened() {
      return opened;
    },
    nowMs,
    advance: async (ms) => {
      time += ms;
    },
    async reopen() {
      await opened.close();
      opened = await start();
    },
    async stop() {
      await opened.close();
      await remove();
    },
  };
}

export const ada: Author = { actor: { kind: 'operator', id: 'ada', name: 'ada', via: '' }, requestId: 'request-1' };

export type Organization = Awaited<ReturnType<typeof organizationWith>>;

/** An organization with that much granted, and short words for what tests do with it. */
export async function organizationWith(harness: LedgerHarness, availableMicros: number) {
  const organizationId = newId();
  const freshId = (ageMs = 0): string => v7({ msecs: harness.nowMs() - ageMs });
  const ledger = () => harness.opened.ledger;
  const balance = () => ledger().balance(organizationId);
  const organization = {
    organizationId,
    freshId,
    balance,
    grant: (id: string, amountMicros: number, note = '') =>
      ledger().grant(organizationId, { id, amountMicros, note }, ada),
    reserve: (id: string, amountMicros: number, { ttlMs = HOUR_MS, maxOpen = 0 } = {}) =>
      ledger().reserve(organizationId, { id, amountMicros, ttlMs, maxOpen }, ada),
    extend: (id: string, ttlMs: number) => ledger().extend(organizationId, id, ttlMs),
    settle: (id: string, chargeMicros: number) => ledger().settle(organizationId, id, chargeMicros, ada),
    release: (id: string) => ledger().release(organizationId, id, ada),
    expire: (limit = 100) => ledger().expire(organizationId, limit),
    rows: (before = 0, limit = 100): Promise<LedgerRow[]> => ledger().rows(organizationId, before, limit),
    kinds: async () => (await ledger().rows(organizationId, 0, 100)).map((row) => row.kind).reverse(),
    /** available, reserved, spent */
    parts: async () => {
      const { availableMicros, reservedMicros, spentMicros } = await balance();
      return [availableMicros, reservedMicros, spentMicros];
    },
  };
  if (availableMicros > 0) await organization.grant(freshId(), availableMicros);
  return organization;
}

/** What each test of a suite finds: an organization of its own with 100 available, and an id that is not used yet. */
export interface Each {
  readonly harness: LedgerHarness;
  readonly organization: Organization;
  readonly id: string;
}

/** Starts one engine for the tests of this `describe`; after each of them its organization's ledger must add up. */
export function eachTest(start: () => Promise<LedgerHarness>): Each {
  const each = {} as { harness: LedgerHarness; organization: Organization; id: string };
  beforeAll(async () => {
    each.harness = await start();
  });
  afterAll(() => each.harness.stop());
  beforeEach(async () => {
    each.organization = await organizationWith(each.harness, 100);
    each.id = each.organization.freshId();
  });
  afterEach(async () => {
    expect(await faultsOf(each.harness.opened.ledger, each.organization.organizationId)).toEqual([]);
  });
  return each;
}
