import { rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { OUTBOX } from '../events/outbox.ts';
import { LEASES } from '../jobs/lease.ts';
import { rowsOfTables } from '../store/sqlite/rows-of-tables.ts';
import { openSqliteStore } from '../store/sqlite/store.ts';
import type { Collection, OpenStore } from '../store/store.ts';

/** What a service looks at in a copy of its SQLite file that nobody serves, beside what is looked at in every file. */
export interface CopyChecks {
  collections: readonly Collection<never>[];
  /** Follows the chains of all organizations. */
  chains?(file: string, opened: OpenStore): Promise<Chains>;
  /** Ids of the master keys under which something is sealed that is still of use. */
  masterKeys?(opened: OpenStore): Promise<string[]>;
}
export interface Chains {
  organizations: number;
  /** Of all chains. */
  links: number;
  /** SHA-256 of where each chain ends. */
  ends: string;
  /** Sentences. */
  faults: string[];
}

/** What a copy holds, and what is wrong with it. */
export interface CopyFindings {
  rows: Record<string, number>;
  chains?: Omit<Chains, 'faults'>;
  masterKeys: string[];
  faults: string[];
}

/** The argument by which a service looks at a copy, prints its findings as JSON and ends. */
export const VERIFY_COPY = '--verify-copy';

const MAX_FAULTS = 20;

/** Opens the file as the service does at its start, which may upgrade it. */
export async function verifyCopy(
  file: string,
  { collections, chains, masterKeys }: CopyChecks = { collections: [] },
): Promise<CopyFindings> {
  const { rows, faults } = inspectFile(file);
  if (faults.length > 0) return { rows, masterKeys: [], faults };
  const opened = await openSqliteStore(file, [...collections, OUTBOX, LEASES]);
  try {
    const followed = await chains?.(file, opened);
    const { faults: broken = [], ...found } = followed ?? {};
    return {
      rows,
      ...(followed && { chains: found as Omit<Chains, 'faults'> }),
      masterKeys: ((await masterKeys?.(opened)) ?? []).sort(),
      faults: broken.slice(0, MAX_FAULTS),
    };
  } finally {
    await opened.close();
    rmSync(`${file}.lock`, { force: true });
  }
}

/** What SQLite itself can tell of a database: whether its pages and indexes are whole, and the rows of each table. */
export function inspectFile(file: string): Pick<CopyFindings, 'rows' | 'faults'> {
  const db = new DatabaseSync(file);
  try {
    const found = db.prepare(`PRAGMA integrity_check(${MAX_FAULTS})`).all();
    const faults = found.map(({ integrity_check: text }) => String(text)).filter((text) => text !== 'ok');
    return { rows: faults.length > 0 ? {} : rowsOfTables(db), faults };
  } catch (error) {
    return { rows: {}, faults: [(error as Error).message] };
  } finally {
    db.close();
  }
}
