import { createHash } from 'node:crypto';
import { isoTime } from 'platform/core/clock.ts';
import { getOrCreate } from 'platform/store/get-or-create.ts';
import { newId } from 'platform/core/ids.ts';
import {
  collection,
  DuplicateKeyError,
  ExpectationFailedError,
  insert,
  update,
  type Changes,
  type Op,
  type OrganizationDocument,
  type PlatformStore,
  type Store,
} from 'platform/store/store.ts';
import type { LedgerRow } from '../ledger.ts';

/** A row as the engine wrote it: `hash` covers its text and the hash of the row before. */
export interface ChainedRow {
  sequence: number;
  /** JSON */
  row: string;
  hash: string;
}
interface MirroredRow extends OrganizationDocument, ChainedRow {}

/** What the document store knows of an organization's ledger; written before the ledger's first step. */
export interface Registration extends OrganizationDocument {
  /** Made anew by each rebuild: whoever holds another one works on a ledger that was replaced. */
  generation: string;
  /** What Redis was found to have lost, until a rebuild; '' otherwise. */
  lost: string;
  mirroredSequence: number;
  /** '' before the first row. */
  mirroredHash: string;
  relayedSequence: number;
  /** relayedSequence < mirroredSequence, for the index. */
  unrelayed: boolean;
}

export const LEDGER_ROWS = collection<MirroredRow>('ledger_rows', {
  scope: 'organization',
  indexes: [{ fields: ['sequence'], unique: true }],
});
export const LEDGER_ACCOUNTS = collection<Registration>('ledger_accounts', {
  scope: 'organization',
  platformIndexes: [{ fields: ['unrelayed', '_id'] }],
});

export const chainHash = (before: string, row: string): string =>
  createHash('sha1')
    .update(before + row)
    .digest('hex');

/** The rows that are on the chain after (sequence, hash), up to the first that is not. */
export function continuing(rows: readonly ChainedRow[], sequence: number, hash: string): ChainedRow[] {
  let before = { sequence, hash };
  const end = rows.findIndex((one) => {
    const follows = one.sequence === before.sequence + 1 && one.hash === chainHash(before.hash, one.row);
    before = one;
    return !follows;
  });
  return rows.slice(0, end < 0 ? rows.length : end);
}

export function rowOf({ row }: ChainedRow): LedgerRow {
  const { createdAtMs, ...parts } = JSON.parse(row) as Omit<LedgerRow, 'createdAt'> & { createdAtMs: number };
  return { ...parts, createdAt: isoTime(createdAtMs) };
}

export type Mirror = ReturnType<typeof ledgerMirror>;

/** The rows of the ledger in the document store, and how far they have come: what a balance can be rebuilt from. */
export function ledgerMirror(store: Store, platformStore: PlatformStore) {
  const registration = (organizationId: string): Promise<Registration> =>
    getOrCreate<Registration>(
      () => store.findOne(organizationId, LEDGER_ACCOUNTS, { _id: organizationId }),
      {
        _id: organizationId,
        organizationId,
        generation: newId(),
        lost: '',
        mirroredSequence: 0,
        mirroredHash: '',
        relayedSequence: 0,
        unrelayed: false,
      },
      (first) => store.apply(organizationId, [insert(LEDGER_ACCOUNTS, first)]),
    );

  /** False when someone else moved it on meanwhile. */
  async function moveOn(
    from: Registration,
    set: Changes<Registration>['set'],
    rows: readonly Op[] = [],
  ): Promise<boolean> {
    const { _id, generation, mirroredSequence, relayedSequence } = from;
    try {
      await store.apply(_id, [
        ...rows,
        update(LEDGER_ACCOUNTS, { _id, generation, mirroredSequence, relayedSequence }, { set }),
      ]);
      return true;
    } catch (error) {
      if (error instanceof ExpectationFailedError || error instanceof DuplicateKeyError) return false;
      throw error;
    }
  }

  const find = async (
    organizationId: string,
    sequence: { gt: number } | { lt: number },
    direction: 'asc' | 'desc',
    limit: number,
  ): Promise<ChainedRow[]> =>
    store.find(organizationId, LEDGER_ROWS, { sequence }, { sort: [['sequence', direction]], limit });

  return {
    registration,
    /** Takes in rows that continue the chain of `from`. False when someone else was faster. */
    append(from: Registration, rows: readonly ChainedRow[]): Promise<boolean> {
      const { sequence, hash } = rows.at(-1)!;
      const { _id: organizationId } = from;
      const inserts = rows.map((one) =>
        insert(LEDGER_ROWS, { ...one, _id: `${organizationId}:${one.sequence}`, organizationId }),
      );
      return moveOn(
        from,
        { mirroredSequence: sequence, mirroredHash: hash, unrelayed: from.relayedSequence < sequence },
        inserts,
      );
    },
    /** False when someone else was faster. */
    renew: (from: Registration, generation: string): Promise<boolean> => moveOn(from, { generation, lost: '' }),
    /** For all replicas, until it is renewed. False when someone else moved it on meanwhile. */
    lose: (from: Registration, lost: string): Promise<boolean> => moveOn(from, { lost }),
    hashOf: async (organizationId: string, sequence: number): Promise<string | undefined> =>
      (await store.findOne(organizationId, LEDGER_ROWS, { _id: `${organizationId}:${sequence}` }))?.hash,
    after: (organizationId: string, sequence: number, limit: number) =>
      find(organizationId, { gt: sequence }, 'asc', limit),
    before: async (organizationId: string, sequence: number, limit: number): Promise<LedgerRow[]> =>
      (await find(organizationId, { lt: sequence }, 'desc', limit)).map(rowOf),
    async unrelayed(organizationId: string, limit: number): Promise<LedgerRow[]> {
      const { relayedSequence } = await registration(organizationId);
      return (await find(organizationId, { gt: relayedSequence }, 'asc', limit)).map(rowOf);
    },
    async acknowledge(organizationId: string, throughSequence: number): Promise<void> {
      for (;;) {
        const from = await registration(organizationId);
        if (from.relayedSequence >= throughSequence) return;
        if (
          await moveOn(from, { relayedSequence: throughSequence, unrelayed: throughSequence < from.mirroredSequence })
        )
          return;
      }
    },
    async organizationsUnrelayed(after: string, limit: number): Promise<string[]> {
      const found = await platformStore.find(
        LEDGER_ACCOUNTS,
        { unrelayed: true, _id: { gt: after } },
        { sort: [['_id', 'asc']], limit },
      );
      return found.map(({ _id }) => _id);
    },
  };
}
