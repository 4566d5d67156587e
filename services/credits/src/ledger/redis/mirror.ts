import { createHash } from 'node:crypto';
import { parseJson } from 'platform/core/parse-json.ts';
import { isoTime } from 'platform/core/clock.ts';
import { ServiceError } from 'platform/core/errors.ts';
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

/** A row as ledger.lua wrote it. Each hash covers the row's text and the hash of the row before: a hash chain. */
export interface ChainedRow {
  sequence: number;
  /** JSON */
  row: string;
  hash: string;
}
interface LedgerRowRecord extends OrganizationDocument, ChainedRow {}

/** How far an organization's ledger is mirrored and published. Written before the first command on the ledger. */
export interface LedgerAccountRecord extends OrganizationDocument {
  /**
   * Id of the ledger's present copy in Redis. Each rebuild starts a new one, and commands for another one are rejected.
   */
  generation: string;
  /** What Redis was found to have lost; '' when nothing is lost. A rebuild clears it. */
  lost: string;
  /** Newest row in the mirror; 0 before the first. */
  mirroredSequence: number;
  /** Hash of that row; '' before the first. */
  mirroredHash: string;
  /** Newest row that was published. */
  relayedSequence: number;
  /** relayedSequence < mirroredSequence; stored for the index. */
  unrelayed: boolean;
}

export const LEDGER_ROWS = collection<LedgerRowRecord>('ledger_rows', {
  scope: 'organization',
  indexes: [{ fields: ['sequence'], unique: true }],
});
export const LEDGER_ACCOUNTS = collection<LedgerAccountRecord>('ledger_accounts', {
  scope: 'organization',
  platformIndexes: [{ fields: ['unrelayed', '_id'] }],
});

/** Redis holds less than what this organization's ledger acknowledged, or something else. `cause` says which. */
export class LostLedgerError extends ServiceError {
  constructor(cause: string) {
    super(
      'UNAVAILABLE',
      'The credit ledger of this organization has lost or forked data and must be rebuilt: ' +
        'npm run admin -- credits rebuild',
      { cause },
    );
  }
}

const chainHash = (before: string, row: string): string =>
  createHash('sha1')
    .update(before + row)
    .digest('hex');

/** The leading rows that continue the hash chain after the row with this sequence and hash. */
export function chainContinuation(rows: readonly ChainedRow[], sequence: number, hash: string): ChainedRow[] {
  let before = { sequence, hash };
  const end = rows.findIndex((one) => {
    const follows = one.sequence === before.sequence + 1 && one.hash === chainHash(before.hash, one.row);
    before = one;
    return !follows;
  });
  return rows.slice(0, end < 0 ? rows.length : end);
}

export function rowOf({ row }: ChainedRow): LedgerRow {
  const { createdAtMs, ...fields } = parseJson(row) as Omit<LedgerRow, 'createdAt'> & { createdAtMs: number };
  return { ...fields, createdAt: isoTime(createdAtMs) };
}

export type Mirror = ReturnType<typeof openMirror>;

/** The copy of all ledger rows in the document store, from which an account can be rebuilt. */
export function openMirror(store: Store, platformStore: PlatformStore) {
  const accountRecord = (organizationId: string): Promise<LedgerAccountRecord> =>
    getOrCreate<LedgerAccountRecord>(
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

  /**
   * Updates the account record, with `rows` in the same batch. False when another process changed it since it was read.
   */
  async function compareAndSet(
    expected: LedgerAccountRecord,
    set: Changes<LedgerAccountRecord>['set'],
    rows: readonly Op[] = [],
  ): Promise<boolean> {
    const { _id, generation, mirroredSequence, relayedSequence } = expected;
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
    /** Created when it does not exist yet. */
    accountRecord,
    /** Adds rows that continue the chain. False when another process changed the account record since it was read. */
    append(expected: LedgerAccountRecord, rows: readonly ChainedRow[]): Promise<boolean> {
      const { sequence, hash } = rows.at(-1)!;
      const { _id: organizationId } = expected;
      const inserts = rows.map((one) =>
        insert(LEDGER_ROWS, { ...one, _id: `${organizationId}:${one.sequence}`, organizationId }),
      );
      return compareAndSet(
        expected,
        { mirroredSequence: sequence, mirroredHash: hash, unrelayed: expected.relayedSequence < sequence },
        inserts,
      );
    },
    /** For a rebuild. False when another process changed the account record since it was read. */
    startGeneration: (expected: LedgerAccountRecord, generation: string): Promise<boolean> =>
      compareAndSet(expected, { generation, lost: '' }),
    /**
     * Makes all replicas reject the organization's calls until a rebuild. False when another process changed the
     * account record since it was read.
     */
    markLost: (expected: LedgerAccountRecord, lost: string): Promise<boolean> => compareAndSet(expected, { lost }),
    hashOf: async (organizationId: string, sequence: number): Promise<string | undefined> =>
      (await store.findOne(organizationId, LEDGER_ROWS, { _id: `${organizationId}:${sequence}` }))?.hash,
    /** Rows above `sequence`, oldest first. */
    after: (organizationId: string, sequence: number, limit: number) =>
      find(organizationId, { gt: sequence }, 'asc', limit),
    /** Rows below `sequence`, newest first. */
    before: async (organizationId: string, sequence: number, limit: number): Promise<LedgerRow[]> =>
      (await find(organizationId, { lt: sequence }, 'desc', limit)).map(rowOf),
    async unrelayed(organizationId: string, limit: number): Promise<LedgerRow[]> {
      const { relayedSequence } = await accountRecord(organizationId);
      return (await find(organizationId, { gt: relayedSequence }, 'asc', limit)).map(rowOf);
    },
    async acknowledge(organizationId: string, throughSequence: number): Promise<void> {
      for (;;) {
        const record = await accountRecord(organizationId);
        if (record.relayedSequence >= throughSequence) return;
        const unrelayed = throughSequence < record.mirroredSequence;
        if (await compareAndSet(record, { relayedSequence: throughSequence, unrelayed })) return;
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

export const MIRROR_BATCH = 500;
/** How many mirrored rows stay in Redis, for the first pages of a listing. */
const KEEP_ROWS = 300;

interface RedisRows {
  /** Rows in Redis from this sequence on, oldest first. */
  rowsFrom(organizationId: string, sequence: number, limit: number): Promise<ChainedRow[]>;
  /** Records in Redis that rows up to `sequence` are mirrored, and removes rows below `keepFrom`. */
  trimMirrored(organizationId: string, generation: string, sequence: number, keepFrom: number): Promise<void>;
}

/**
 * Copies rows that the mirror does not have yet, in order, and trims Redis. Resolves to their number, at most
 * MIRROR_BATCH.
 * @throws LostLedgerError when the rows in Redis do not continue the mirror
 */
export async function mirrorRows(
  { mirror, rowsFrom, trimMirrored }: RedisRows & { mirror: Mirror },
  organizationId: string,
): Promise<number> {
  for (;;) {
    const record = await mirror.accountRecord(organizationId);
    const { generation, mirroredSequence, mirroredHash } = record;
    const rows = await rowsFrom(
      organizationId,
      mirroredSequence,
      mirroredSequence === 0 ? MIRROR_BATCH : MIRROR_BATCH + 1,
    );
    const newest =
      mirroredSequence === 0 ? { hash: '' } : rows[0]?.sequence === mirroredSequence ? rows.shift() : undefined;
    const next = newest?.hash === mirroredHash ? chainContinuation(rows, mirroredSequence, mirroredHash) : [];
    const forked = newest?.hash !== mirroredHash || (rows.length > 0 && next.length === 0);
    if (forked) {
      const again = await mirror.accountRecord(organizationId);
      if (again.mirroredSequence === mirroredSequence)
        throw new LostLedgerError(`what Redis holds after row ${mirroredSequence} does not continue the mirror`);
      continue;
    }
    if (next.length > 0 && !(await mirror.append(record, next))) continue;
    const sequence = next.at(-1)?.sequence ?? mirroredSequence;
    await trimMirrored(organizationId, generation, sequence, Math.max(1, sequence - KEEP_ROWS + 1));
    return next.length;
  }
}
