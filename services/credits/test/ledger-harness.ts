import { v7 } from 'uuid';
import { DAY_MS, HOUR_MS, type Clock } from 'platform/core/clock.ts';
import { newId } from 'platform/core/ids.ts';
import type { Author, LedgerRow, OpenLedger } from '../src/ledger/ledger.ts';
import { faultsOf } from './ledger-invariants.ts';

/** The retention that every engine under test is opened with. */
export const RETENTION_MS = 30 * DAY_MS;

/** One engine under test. */
export interface LedgerHarness {
  readonly opened: OpenLedger;
  /** Only with two replicas: makes `opened` replica 0 or 1. */
  useReplica?(replica: number): void;
  /** The engine's time, in milliseconds since the epoch. */
  nowMs(): number;
  /** Advances the engine's time. */
  advance(ms: number): Promise<void>;
  /** Closes the engine and opens it again on the same data. */
  reopen(): Promise<void>;
  stop(): Promise<void>;
}

/** Opens an engine whose time stands still between advances. `remove` deletes its data. */
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

/** A new organization with this amount granted, and short forms of the ledger's calls for it. */
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
    /** [available, reserved, spent] */
    balances: async () => {
      const { availableMicros, reservedMicros, spentMicros } = await balance();
      return [availableMicros, reservedMicros, spentMicros];
    },
  };
  if (availableMicros > 0) await organization.grant(freshId(), availableMicros);
  return organization;
}

/** What each test gets: an organization of its own with 100 available, and an id that is not used yet. */
export interface TestContext {
  readonly harness: LedgerHarness;
  readonly organization: Organization;
  readonly id: string;
}

/** Starts one engine for the tests of this `describe`. After each test its organization's ledger must add up. */
export function withLedger(start: () => Promise<LedgerHarness>): TestContext {
  const context = {} as { harness: LedgerHarness; organization: Organization; id: string };
  beforeAll(async () => {
    context.harness = await start();
  });
  afterAll(() => context.harness.stop());
  beforeEach(async () => {
    context.organization = await organizationWith(context.harness, 100);
    context.id = context.organization.freshId();
  });
  afterEach(async () => {
    expect(await faultsOf(context.harness.opened.ledger, context.organization.organizationId)).toEqual([]);
  });
  return context;
}
