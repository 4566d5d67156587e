import type { Topic } from 'platform/events/bus.ts';
import type { Kind } from '../load/requests.ts';
import type { Stack } from '../../test/support/stack.ts';
import { openFileRecords } from './file-records.ts';
import { openServerRecords } from './server-records.ts';

/** What waits behind the changes that were answered. */
export interface Backlog {
  /** Events that are not on the bus yet. */
  outbox: number;
  /** Organizations with ledger rows that are not on the bus yet. */
  ledgers: number;
  /** Events that the audit trail does not have yet. */
  audit: number;
}
export const isEmpty = (backlog: Backlog): boolean => Object.values(backlog).every((count) => count === 0);

/** Events by topic, and entries of the audit trail, of all organizations. */
export type RecordCounts = Record<Topic | 'audit entries', number>;

export interface Records {
  backlog(): Promise<Backlog>;
  counts(): Promise<RecordCounts>;
  /** Milliseconds for which the oldest event has waited; 0 if none waits, undefined where that cannot be read. */
  oldestMs(): number | undefined;
  close(): Promise<void>;
}

const CHANGE = { 'memory.change.v1': 1, 'audit.v1': 1, 'audit entries': 1 };
/** What one request of success leaves (docs/events.md): a run is started and finished, reserved and settled. */
const LEAVES: Readonly<Record<Kind, Partial<RecordCounts>>> = {
  ...{ get: {}, list: {}, filtered: {}, deep: {} },
  ...{ create: CHANGE, update: CHANGE, upsert: CHANGE },
  run: { 'agent.execution.v1': 2, 'credits.ledger.v1': 2, 'audit.v1': 1, 'audit entries': 1 },
};

/** The counts that so many requests of success add. */
export function countsAfter(before: RecordCounts, succeeded: Readonly<Record<Kind, number>>): RecordCounts {
  const after = { ...before };
  for (const [kind, requests] of Object.entries(succeeded) as [Kind, number][])
    for (const [record, count] of Object.entries(LEAVES[kind]) as [keyof RecordCounts, number][])
      after[record] += count * requests;
  return after;
}

/** Reads the databases of a stack beside its processes. */
export const openRecords = (stack: Stack): Records =>
  stack.env.MONGODB_URL ? openServerRecords(stack) : openFileRecords(stack.folder);
