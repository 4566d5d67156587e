import { DAY_MS, HOUR_MS } from 'platform/core/clock.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { newId } from 'platform/core/ids.ts';
import { organizationWith, RETENTION_MS, type TestContext, type Organization } from './ledger-harness.ts';

/** The acceptance suite for every engine of the ledger: time, ids and arguments. */
export function ledgerSuiteTime(context: TestContext): void {
  describe('the expiry of a reservation', () => {
    it('happens at its time, to the millisecond, whether or not the sweeper has run', async () => {
      const { harness, organization, id } = context;
      await organization.reserve(id, 30, { ttlMs: 5_000 });
      await harness.advance(4_999);
      expect(await organization.extend(id, 1_000)).toEqual({ outcome: 'FOUND', state: 'OPEN' });
      await harness.advance(1_000);
      expect(await organization.extend(id, 60_000)).toEqual({ outcome: 'FOUND', state: 'EXPIRED' });
      expect(await organization.balances()).toEqual([100, 0, 0]);
      expect((await organization.rows())[0]).toMatchObject({
        kind: 'EXPIRE',
        actor: { kind: 'service', id: 'credits' },
      });
    });
    it('is never moved to an earlier time by an extension', async () => {
      const { harness, organization, id } = context;
      await organization.reserve(id, 30, { ttlMs: 60_000 });
      await organization.extend(id, 1_000);
      await harness.advance(59_999);
      expect(await organization.expire()).toBe(0);
      await harness.advance(1);
      expect(await organization.expire()).toBe(1);
    });
    it('happens before a reserve in the same organization, so that its amount is available', async () => {
      const { harness, organization, id } = context;
      await organization.reserve(organization.freshId(), 100, { ttlMs: 1_000 });
      await harness.advance(1_000);
      expect(await organization.reserve(id, 100, { maxOpen: 1 })).toMatchObject({ outcome: 'RESERVED' });
    });
    it('ends its id: a reserve with this id is ENDED', async () => {
      const { harness, organization, id } = context;
      await organization.reserve(id, 30, { ttlMs: 1_000 });
      await harness.advance(1_000);
      expect(await organization.reserve(id, 30)).toEqual({ outcome: 'ENDED', state: 'EXPIRED', availableMicros: 100 });
    });
    it('does not prevent the charge: a late settlement charges the available balance', async () => {
      const { harness, organization, id } = context;
      await organization.reserve(id, 30, { ttlMs: 1_000 });
      await harness.advance(1_000);
      expect(await organization.settle(id, 12)).toEqual({
        outcome: 'FOUND',
        state: 'SETTLED',
        chargedMicros: 12,
        shortfallMicros: 0,
      });
      expect(await organization.kinds()).toEqual(['GRANT', 'RESERVE', 'EXPIRE', 'LATE_SETTLE']);
      expect(await organization.balances()).toEqual([88, 0, 12]);
    });
    it('may leave a shortfall: a late settlement records what it could not charge', async () => {
      const { harness, organization, id } = context;
      await organization.reserve(id, 30, { ttlMs: 1_000 });
      await harness.advance(1_000);
      await organization.reserve(organization.freshId(), 95);
      const late = await organization.settle(id, 30);
      expect(late).toEqual({ outcome: 'FOUND', state: 'SETTLED', chargedMicros: 5, shortfallMicros: 25 });
      expect(await organization.settle(id, 30)).toEqual(late);
      expect((await organization.rows())[0]).toMatchObject({
        kind: 'LATE_SETTLE',
        spentDeltaMicros: 5,
        shortfallMicros: 25,
      });
    });
    it('is final for a release: an expired reservation stays EXPIRED', async () => {
      const { harness, organization, id } = context;
      await organization.reserve(id, 30, { ttlMs: 1_000 });
      await harness.advance(1_000);
      expect(await organization.release(id)).toEqual({ outcome: 'FOUND', state: 'EXPIRED' });
    });
    it('is swept in bounded batches in all organizations', async () => {
      const { harness, organization, id } = context;
      const other = await organizationWith(harness, 10);
      for (let i = 0; i < 5; i++) await organization.reserve(organization.freshId(), 1, { ttlMs: 1_000 });
      await other.reserve(id, 1, { ttlMs: 1_000 });
      const due = async () =>
        (await harness.opened.platformLedger.organizationsDue('', 1000)).filter(
          (one) => one === organization.organizationId || one === other.organizationId,
        );
      expect(await due()).toEqual([]);
      const open = await harness.opened.platformLedger.organizationsExpiring(Number.MAX_SAFE_INTEGER, '', 1000);
      expect(open).toEqual(expect.arrayContaining([organization.organizationId, other.organizationId]));
      expect(await harness.opened.platformLedger.organizationsExpiring(1, '', 1000)).toEqual([]);
      await harness.advance(1_000);
      expect(await due()).toEqual([organization.organizationId, other.organizationId].sort());
      expect(await organization.expire(3)).toBe(3);
      expect(await organization.expire(3)).toBe(2);
      expect(await due()).toEqual([other.organizationId]);
      expect(await harness.opened.platformLedger.organizationsDue(other.organizationId, 1000)).not.toContain(
        other.organizationId,
      );
    });
  });

  describe('an id', () => {
    const REJECTED = { outcome: 'ID_OUT_OF_WINDOW' };
    it.each([
      ['older than the retention', RETENTION_MS + 1],
      ['more than a day ahead of the clock', -DAY_MS - 1],
    ])('%s is rejected by every call', async (_, ageMs) => {
      const { organization } = context;
      const outside = organization.freshId(ageMs);
      expect(await organization.grant(outside, 1)).toEqual(REJECTED);
      expect(await organization.reserve(outside, 1)).toEqual(REJECTED);
      expect(await organization.release(outside)).toEqual(REJECTED);
      expect(await organization.settle(outside, 1)).toEqual(REJECTED);
      expect(await organization.extend(outside, 1_000)).toEqual(REJECTED);
      expect(await organization.kinds()).toEqual(['GRANT']);
    });
    it('just within the window is accepted', async () => {
      const { organization } = context;
      expect(await organization.reserve(organization.freshId(RETENTION_MS), 1)).toMatchObject({ outcome: 'RESERVED' });
      expect(await organization.reserve(organization.freshId(-DAY_MS), 1)).toMatchObject({ outcome: 'RESERVED' });
    });
    it('that has left the window still ends its open reservation, once', async () => {
      const { harness, organization } = context;
      const old = organization.freshId(RETENTION_MS);
      await organization.reserve(old, 30);
      await harness.advance(1);
      expect(await organization.extend(old, HOUR_MS)).toEqual({ outcome: 'FOUND', state: 'OPEN' });
      expect(await organization.settle(old, 30)).toMatchObject({ state: 'SETTLED', chargedMicros: 30 });
      expect(await organization.settle(old, 30)).toEqual(REJECTED);
      expect(await organization.reserve(old, 30)).toEqual(REJECTED);
    });
  });

  describe('a reservation that has left the window', () => {
    it('may be deleted once it has ended, as may a tombstone; open and younger ones and all rows stay', async () => {
      const { harness, organization } = context;
      const deleteEnded = (limit: number) => harness.opened.platformLedger.deleteEnded(limit);
      const old = Array.from({ length: 4 }, () => organization.freshId(RETENTION_MS - 1_000));
      const [settled, expired, tombstone, open] = old as [string, string, string, string];
      const young = organization.freshId(RETENTION_MS - 1_001);
      await organization.reserve(settled, 10);
      await organization.settle(settled, 10);
      await organization.reserve(expired, 10, { ttlMs: 1_000 });
      await organization.release(tombstone);
      await organization.reserve(open, 10);
      await organization.reserve(young, 10);
      await organization.settle(young, 10);
      await harness.advance(1_000);
      await organization.expire();

      await harness.advance(1);
      const before = await organization.kinds();
      while (await deleteEnded(1_000));
      expect(await organization.kinds()).toEqual(before);
      for (const id of [settled, expired, tombstone])
        expect(await organization.reserve(id, 10)).toEqual({ outcome: 'ID_OUT_OF_WINDOW' });
      expect(await organization.reserve(young, 10)).toMatchObject({ outcome: 'ENDED' });
      expect(await organization.settle(open, 10)).toMatchObject({ state: 'SETTLED', chargedMicros: 10 });
    });
  });

  describe('bad arguments', () => {
    const bad: [string, (organization: Organization, id: string) => Promise<unknown>][] = [
      ...['', 'x', newId().toUpperCase(), 'a3bb189e-8bf9-4888-9912-ace4e6543002'].map((wrong): (typeof bad)[number] => [
        `the id "${wrong}"`,
        (o) => o.reserve(wrong, 1),
      ]),
      ...[-1, 0.5, NaN, Infinity, 1e15 + 1, -0].flatMap((amount): typeof bad => [
        [`a grant of ${amount}`, (o, id) => o.grant(id, amount)],
        [`a reservation of ${amount}`, (o, id) => o.reserve(id, amount)],
        [`a charge of ${amount}`, (o, id) => o.settle(id, amount)],
      ]),
      ['a grant of 0', (o, id) => o.grant(id, 0)],
      ['a note of 201 characters', (o, id) => o.grant(id, 1, 'n'.repeat(201))],
      ...[0, 999, DAY_MS + 1, 1_000.5].flatMap((ttlMs): typeof bad => [
        [`a reservation for ${ttlMs} ms`, (o, id) => o.reserve(id, 1, { ttlMs })],
        [`an extension by ${ttlMs} ms`, (o, id) => o.extend(id, ttlMs)],
      ]),
      ['a limit of -1 open reservations', (o, id) => o.reserve(id, 1, { maxOpen: -1 })],
      ['a release of no id', (o) => o.release('')],
      ['a page of 0 rows', (o) => o.rows(0, 0)],
      ['a page before -1', (o) => o.rows(-1)],
    ];
    it.each(bad)('%s: rejected, nothing written', async (_, attempt) => {
      const { organization, id } = context;
      const rejection = await attempt(organization, id).then(
        () => undefined,
        (error: unknown) => error,
      );
      expect(rejection).toBeInstanceOf(ServiceError);
      expect(rejection).toMatchObject({
        reason: 'INVALID_REQUEST',
        details: [{ path: expect.stringMatching(/^\/\w+$/) }],
      });
      expect(await organization.kinds()).toEqual(['GRANT']);
    });
  });
}
