import { ada, organizationWith, type TestContext } from './ledger-harness.ts';

/** The acceptance suite for every engine of the ledger: accounts, reservations and rows. */
export function ledgerSuite(context: TestContext): void {
  describe('a grant', () => {
    it('adds to the account once, however often it is repeated', async () => {
      const { organization, id } = context;
      const first = await organization.grant(id, 50, 'trial');
      expect(first).toEqual({
        outcome: 'GRANTED',
        account: {
          availableMicros: 150,
          reservedMicros: 0,
          spentMicros: 0,
          grantedMicros: 150,
          openReservations: 0,
          sequence: 2,
        },
      });
      expect(await organization.grant(id, 50)).toEqual(first);
      expect(await organization.rows()).toMatchObject([
        { sequence: 2, kind: 'GRANT', id, note: 'trial', ...ada },
        { sequence: 1 },
      ]);
    });
    it('with a known id and another amount is a CONFLICT', async () => {
      const { organization, id } = context;
      await organization.grant(id, 50);
      expect(await organization.grant(id, 51)).toEqual({ outcome: 'CONFLICT' });
      expect(await organization.balances()).toEqual([150, 0, 0]);
    });
    it('is rejected when the account could not be held exactly', async () => {
      const { organization } = context;
      const grants = await Promise.all(
        Array.from({ length: 10 }, () => organization.grant(organization.freshId(), 1e15)),
      );
      expect(grants.map((grant) => grant.outcome)).toEqual([...Array(9).fill('GRANTED'), 'ACCOUNT_FULL']);
      expect(await organization.balances()).toEqual([9e15 + 100, 0, 0]);
    });
  });

  describe('a reservation', () => {
    it('reserves its amount once, and a repeat gets the same answer', async () => {
      const { organization, id } = context;
      const first = await organization.reserve(id, 30);
      expect(first).toEqual({ outcome: 'RESERVED', state: 'OPEN', availableMicros: 70 });
      expect(await organization.reserve(id, 30)).toEqual(first);
      expect(await organization.balances()).toEqual([70, 30, 0]);
      expect(await organization.kinds()).toEqual(['GRANT', 'RESERVE']);
    });
    it('with a known id and another amount is a CONFLICT, open or ended', async () => {
      const { organization, id } = context;
      await organization.reserve(id, 30);
      expect(await organization.reserve(id, 31)).toEqual({ outcome: 'CONFLICT' });
      await organization.settle(id, 30);
      expect(await organization.reserve(id, 31)).toEqual({ outcome: 'CONFLICT' });
    });
    it('of more than is available is rejected and writes nothing', async () => {
      const { organization, id } = context;
      expect(await organization.reserve(id, 101)).toEqual({ outcome: 'INSUFFICIENT', availableMicros: 100 });
      expect(await organization.kinds()).toEqual(['GRANT']);
      expect(await organization.reserve(id, 100)).toMatchObject({ outcome: 'RESERVED' });
    });
    it('of an organization without an account is rejected', async () => {
      const { harness, id } = context;
      const empty = await organizationWith(harness, 0);
      expect(await empty.reserve(id, 1)).toEqual({ outcome: 'INSUFFICIENT', availableMicros: 0 });
      expect(await empty.balance()).toEqual({
        availableMicros: 0,
        reservedMicros: 0,
        spentMicros: 0,
        grantedMicros: 0,
        openReservations: 0,
        sequence: 0,
      });
    });
    it('above the limit of open reservations is rejected before the balance is checked', async () => {
      const { organization, id } = context;
      await organization.reserve(organization.freshId(), 60);
      await organization.reserve(organization.freshId(), 0);
      expect(await organization.reserve(id, 60, { maxOpen: 2 })).toEqual({
        outcome: 'TOO_MANY_OPEN',
        availableMicros: 40,
      });
      expect(await organization.reserve(id, 60, { maxOpen: 3 })).toEqual({
        outcome: 'INSUFFICIENT',
        availableMicros: 40,
      });
      expect(await organization.reserve(id, 40, { maxOpen: 3 })).toMatchObject({ outcome: 'RESERVED' });
    });
    it('that is open already is not counted again when it is repeated', async () => {
      const { organization, id } = context;
      await organization.reserve(id, 1, { maxOpen: 1 });
      expect(await organization.reserve(id, 1, { maxOpen: 1 })).toMatchObject({ outcome: 'RESERVED' });
    });
    it('of the amount 0 counts as open and has rows', async () => {
      const { organization, id } = context;
      await organization.reserve(id, 0);
      expect(await organization.balance()).toMatchObject({ openReservations: 1 });
      expect(await organization.settle(id, 0)).toEqual({
        outcome: 'FOUND',
        state: 'SETTLED',
        chargedMicros: 0,
        shortfallMicros: 0,
      });
      expect(await organization.balance()).toMatchObject({ openReservations: 0, availableMicros: 100, sequence: 3 });
    });
    it('succeeds exactly ten times when thirty callers ask at once for a tenth of the balance each', async () => {
      const { organization } = context;
      const results = await Promise.all(
        Array.from({ length: 30 }, () => organization.reserve(organization.freshId(), 10)),
      );
      expect(results.filter((result) => result.outcome === 'RESERVED')).toHaveLength(10);
      expect(results.filter((result) => result.outcome === 'INSUFFICIENT')).toHaveLength(20);
      expect(await organization.balances()).toEqual([0, 100, 0]);
    });
    it('of one organization is unknown in another', async () => {
      const { harness, organization, id } = context;
      await organization.reserve(id, 30);
      const other = await organizationWith(harness, 5);
      expect(await other.settle(id, 1)).toEqual({ outcome: 'UNKNOWN' });
      expect(await other.reserve(id, 5)).toMatchObject({ outcome: 'RESERVED', availableMicros: 0 });
    });
  });

  describe('a settlement', () => {
    it('charges once and gives the rest back, whatever a repeat asks for', async () => {
      const { organization, id } = context;
      await organization.reserve(id, 30);
      const first = await organization.settle(id, 12);
      expect(first).toEqual({ outcome: 'FOUND', state: 'SETTLED', chargedMicros: 12, shortfallMicros: 0 });
      expect(await organization.settle(id, 13)).toEqual(first);
      expect(await organization.balances()).toEqual([88, 0, 12]);
      expect(await organization.reserve(id, 30)).toEqual({ outcome: 'ENDED', state: 'SETTLED', availableMicros: 88 });
    });
    it('above the reservation takes the rest from what is available', async () => {
      const { organization, id } = context;
      await organization.reserve(id, 30);
      expect(await organization.settle(id, 45)).toMatchObject({ chargedMicros: 45, shortfallMicros: 0 });
      expect(await organization.balances()).toEqual([55, 0, 45]);
    });
    it('above reservation and available balance records a shortfall, and leaves other reservations alone', async () => {
      const { organization, id } = context;
      await organization.reserve(organization.freshId(), 60);
      await organization.reserve(id, 30);
      const result = await organization.settle(id, 50);
      expect(result).toEqual({ outcome: 'FOUND', state: 'SETTLED', chargedMicros: 40, shortfallMicros: 10 });
      expect(await organization.settle(id, 50)).toEqual(result);
      expect(await organization.balances()).toEqual([0, 60, 40]);
      expect((await organization.rows())[0]).toMatchObject({
        kind: 'SETTLE',
        spentDeltaMicros: 40,
        shortfallMicros: 10,
      });
    });
    it('of a released reservation charges nothing', async () => {
      const { organization, id } = context;
      await organization.reserve(id, 30);
      await organization.release(id);
      expect(await organization.settle(id, 30)).toEqual({
        outcome: 'FOUND',
        state: 'RELEASED',
        chargedMicros: 0,
        shortfallMicros: 0,
      });
    });
    it('of an unknown id is rejected', async () => {
      const { organization, id } = context;
      expect(await organization.settle(id, 1)).toEqual({ outcome: 'UNKNOWN' });
    });
  });

  describe('a release', () => {
    it('gives the whole amount back once', async () => {
      const { organization, id } = context;
      await organization.reserve(id, 30);
      expect(await organization.release(id)).toEqual({ outcome: 'FOUND', state: 'RELEASED' });
      expect(await organization.release(id)).toEqual({ outcome: 'FOUND', state: 'RELEASED' });
      expect(await organization.kinds()).toEqual(['GRANT', 'RESERVE', 'RELEASE']);
      expect(await organization.balances()).toEqual([100, 0, 0]);
    });
    it('of an unknown id makes a reserve that arrives later ENDED, whatever its amount', async () => {
      const { organization, id } = context;
      expect(await organization.release(id)).toEqual({ outcome: 'FOUND', state: 'RELEASED' });
      expect(await organization.reserve(id, 30)).toEqual({ outcome: 'ENDED', state: 'RELEASED', availableMicros: 100 });
      expect(await organization.kinds()).toEqual(['GRANT']);
    });
    it('of a settled reservation changes nothing', async () => {
      const { organization, id } = context;
      await organization.reserve(id, 30);
      await organization.settle(id, 30);
      expect(await organization.release(id)).toEqual({ outcome: 'FOUND', state: 'SETTLED' });
      expect(await organization.balances()).toEqual([70, 0, 30]);
    });
  });

  describe('the rows', () => {
    it('come newest first, in pages without a gap', async () => {
      const { organization } = context;
      for (let i = 0; i < 4; i++) await organization.reserve(organization.freshId(), 1);
      expect((await organization.rows(0, 3)).map((row) => row.sequence)).toEqual([5, 4, 3]);
      expect((await organization.rows(3, 3)).map((row) => row.sequence)).toEqual([2, 1]);
      expect(await organization.rows(1)).toEqual([]);
    });
    it('are listed as unrelayed, oldest first, until they are acknowledged', async () => {
      const { harness, organization } = context;
      const { ledger, platformLedger } = harness.opened;
      const { organizationId } = organization;
      const isUnrelayed = async () => (await platformLedger.organizationsUnrelayed('', 1000)).includes(organizationId);
      for (let i = 0; i < 3; i++) await organization.reserve(organization.freshId(), 1);
      const first = await ledger.unrelayed(organizationId, 2);
      expect(first).toEqual((await organization.rows(3)).reverse());
      await ledger.acknowledge(organizationId, 2);
      await ledger.acknowledge(organizationId, 1);
      expect((await ledger.unrelayed(organizationId, 10)).map((row) => row.sequence)).toEqual([3, 4]);
      expect(await isUnrelayed()).toBe(true);
      await ledger.acknowledge(organizationId, 4);
      expect(await isUnrelayed()).toBe(false);
      await organization.settle((await organization.rows())[0]!.id, 1);
      expect((await ledger.unrelayed(organizationId, 10)).map((row) => row.kind)).toEqual(['SETTLE']);
    });
    it('survive a restart of the engine, as do the account, the reservations and the acknowledgements', async () => {
      const { harness, organization, id } = context;
      await organization.reserve(id, 30);
      await harness.opened.ledger.acknowledge(organization.organizationId, 1);
      const [rows, balance] = [await organization.rows(), await organization.balance()];
      await harness.reopen();
      expect([await organization.rows(), await organization.balance()]).toEqual([rows, balance]);
      expect(await organization.reserve(id, 30)).toMatchObject({ outcome: 'RESERVED' });
      expect(await harness.opened.ledger.unrelayed(organization.organizationId, 10)).toEqual([rows[0]]);
    });
  });
}
