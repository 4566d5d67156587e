import { DAY_MS, HOUR_MS } from 'platform/core/clock.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { newId } from 'platform/core/ids.ts';
import { organizationWith, RETENTION_MS, type Each, type Organization } from './ledger-harness.ts';

/** What every engine of the ledger promises of time, ids and arguments. */
export function ledgerSuiteTime(each: Each): void {
  describe('time', () => {
    it('expires a reservation at its end, to the millisecond, swept or not', async () => {
      const { harness, organization, id } = each;
      await organization.reserve(id, 30, { ttlMs: 5_000 });
      await harness.advance(4_999);
      expect(await organization.extend(id, 1_000)).toEqual({ outcome: 'FOUND', state: 'OPEN' });
      await harness.advance(1_000);
      expect(await organization.extend(id, 60_000)).toEqual({ outcome: 'FOUND', state: 'EXPIRED' });
      expect(await organization.parts()).toEqual([100, 0, 0]);
      expect((await organization.rows())[0]).toMatchObject({
        kind: 'EXPIRE',
        actor: { kind: 'service', id: 'credits' },
      });
    });
    it('is never taken away by an extension', async () => {
      const { harness, organization, id } = each;
      await organization.reserve(id, 30, { ttlMs: 60_000 });
      await organization.extend(id, 1_000);
      await harness.advance(59_999);
      expect(await organization.expire()).toBe(0);
      await harness.advance(1);
      expect(await organization.expire()).toBe(1);
    });
    it('makes room: a reserve expires what is due in its organization first', async () => {
      const { harness, organization, id } = each;
      await organization.reserve(organization.freshId(), 100, { ttlMs: 1_000 });
      await harness.advance(1_000);
      expect(await organization.reserve(id, 100, { maxOpen: 1 })).toMatchObject({ outcome: 'RESERVED' });
    });
    it('ends a run before it starts: an expired id is not reserved again', async () => {
      const { harness, organization, id } = each;
      await organization.reserve(id, 30, { ttlMs: 1_000 });
      await harness.advance(1_000);
      expect(await organization.reserve(id, 30)).toEqual({ outcome: 'ENDED', state: 'EXPIRED', availableMicros: 100 });
    });
    it('does not forgive: a settlement after expiry charges what is available', async () => {
      const { harness, organization, id } = each;
      await organization.reserve(id, 30, { ttlMs: 1_000 });
      await harness.advance(1_000);
      expect(await organization.settle(id, 12)).toEqual({
        outcome: 'FOUND',
        state: 'SETTLED',
        chargedMicros: 12,
        shortfallMicros: 0,
      });
      expect(await organization.kinds()).toEqual(['GRANT', 'RESERVE', 'EXPIRE', 'LATE_SETTLE']);
      expect(await organization.parts()).toEqual([88, 0, 12]);
    });
    it('may cost the platform: a settlement after expiry records what it could not charge', async () => {
      const { harness, organization, id } = each;
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
    it('leaves an expired reservation expired when it is released', async () => {
      const { harness, organization, id } = each;
      await organization.reserve(id, 30, { ttlMs: 1_000 });
      await harness.advance(1_000);
      expect(await organization.release(id)).toEqual({ outcome: 'FOUND', state: 'EXPIRED' });
    });
    it('is swept in bounded batches over all organizations', async () => {
      const { harness, organization, id } = each;
      const other = await organizationWith(harness, 10);
      for (let i = 0; i < 5; i++) await organization.reserve(organization.freshId(), 1, { ttlMs: 1_000 });
      await other.reserve(id, 1, { ttlMs: 1_000 });
      const due = async () =>
        (await harness.opened.platformLedger.organizationsDue('', 1000)).filter(
          (one) => one === organization.organizationId || one === other.organizationId,
        );
      expect(await due()).toEqual([]);
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
    const REFUSED = { outcome: 'ID_OUT_OF_WINDOW' };
    it.each([
      ['older than the retention', RETENTION_MS + 1],
      ['ahead of the clock by over a day', -DAY_MS - 1],
    ])('%s is refused by whatever would create something', async (_, ageMs) => {
      const { organization } = each;
      const outside = organization.freshId(ageMs);
      expect(await organization.grant(outside, 1)).toEqual(REFUSED);
      expect(await organization.reserve(outside, 1)).toEqual(REFUSED);
      expect(await organization.release(outside)).toEqual(REFUSED);
      expect(await organization.settle(outside, 1)).toEqual(REFUSED);
      expect(await organization.extend(outside, 1_000)).toEqual(REFUSED);
      expect(await organization.kinds()).toEqual(['GRANT']);
    });
    it('just within the window is accepted', async () => {
      const { organization } = each;
      expect(await organization.reserve(organization.freshId(RETENTION_MS), 1)).toMatchObject({ outcome: 'RESERVED' });
      expect(await organization.reserve(organization.freshId(-DAY_MS), 1)).toMatchObject({ outcome: 'RESERVED' });
    });
    it('that has left the window still ends its open reservation, once', async () => {
      const { harness, organization } = each;
      const old = organization.freshId(RETENTION_MS);
      await organization.reserve(old, 30);
      await harness.advance(1);
      expect(await organization.extend(old, HOUR_MS)).toEqual({ outcome: 'FOUND', state: 'OPEN' });
      expect(await organization.settle(old, 30)).toMatchObject({ state: 'SETTLED', chargedMicros: 30 });
      expect(await organization.settle(old, 30)).toEqual(REFUSED);
      expect(await organization.reserve(old, 30)).toEqual(REFUSED);
    });
  });

  describe('a reservation that has left the window', () => {
    it('may be deleted once it has ended, tombstones too; open and younger ones stay, and the rows', async () => {
      const { harness, organization } = each;
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
    it.each(bad)('%s: refused, nothing written', async (_, attempt) => {
      const { organization, id } = each;
      const refused = await attempt(organization, id).then(
        () => undefined,
        (error: unknown) => error,
      );
      expect(refused).toBeInstanceOf(ServiceError);
      expect(refused).toMatchObject({
        reason: 'INVALID_REQUEST',
        details: [{ path: expect.stringMatching(/^\/\w+$/) }],
      });
      expect(await organization.kinds()).toEqual(['GRANT']);
    });
  });
}
