import type { KnownReason } from 'platform/core/errors.ts';
import type { Actor } from 'platform/core/principal.ts';
import {
  collection,
  insert,
  remove,
  update,
  DuplicateKeyError,
  ExpectationFailedError,
  type Expectation,
  type Op,
  type OrganizationDocument,
  type Store,
} from 'platform/store/store.ts';
import { ACTIVE, ENDED, type Status } from './rules.ts';

/** The light record that lists read. Its `_id` is the id of its reservation of credits, too. */
export interface Execution extends OrganizationDocument {
  sessionId: string;
  agent: string;
  agentVersion: number;
  status: Status;
  error: { reason: KnownReason; message: string } | null;
  actor: Actor;
  chargeMicros: number | null;
  steps: number | null;
  requestId: string;
  /** `_id` of the claim on its idempotency key. */
  runKeyId: string | null;
  createdAt: string;
  startedAt: string | null;
  finishedAt: string | null;
  /** The process that runs it; the reaper takes it over by raising the epoch. */
  owner: string;
  epoch: number;
  /** Store time in milliseconds after which the reaper sees to it; null: ended and settled, nothing is left to do. */
  leaseUntil: number | null;
}

/** What is large, or nobody's business after a while: kept apart and shorter. */
export interface ExecutionPayload extends OrganizationDocument {
  args: string;
  output: string | null;
  /** JSON array. */
  messages: string;
  createdAt: string;
}

/** The claim of an execution on an idempotency key. */
export interface RunKey extends OrganizationDocument {
  key: string;
  /** SHA-256 of the canonical request. */
  requestHash: string;
  executionId: string;
  createdAt: string;
}

export const executions = collection<Execution>('executions', {
  scope: 'organization',
  indexes: [{ fields: ['_id'] }, { fields: ['agent', '_id'] }, { fields: ['status', '_id'] }],
  platformIndexes: [{ fields: ['leaseUntil'] }, { fields: ['createdAt'] }],
});
export const executionPayloads = collection<ExecutionPayload>('execution_payloads', {
  scope: 'organization',
  platformIndexes: [{ fields: ['createdAt'] }],
});
export const runKeys = collection<RunKey>('run_keys', {
  scope: 'organization',
  indexes: [{ fields: ['key'], unique: true }],
  platformIndexes: [{ fields: ['createdAt'] }],
});

export type Executions = ReturnType<typeof openExecutions>;

/** @param leaseUntil end of a lease that begins now, in the store's time */
export function openExecutions(store: Store, leaseUntil: () => Promise<number>) {
  /** False when the expectation failed: somebody else was first. */
  async function applied(organizationId: string, ops: readonly Op[]): Promise<boolean> {
    try {
      await store.apply(organizationId, ops);
      return true;
    } catch (error) {
      if (error instanceof ExpectationFailedError) return false;
      throw error;
    }
  }
  const owned = ({ _id, owner, epoch }: Execution): Expectation<Execution> => ({
    _id,
    owner,
    epoch,
    status: { in: ACTIVE },
  });

  return {
    find: (organizationId: string, id: string) => store.findOne(organizationId, executions, { _id: id }),
    findPayload: (organizationId: string, id: string) => store.findOne(organizationId, executionPayloads, { _id: id }),
    findRunKey: (organizationId: string, key: string) => store.findOne(organizationId, runKeys, { key }),
    /** Newest first, those before the id `before`. */
    list: (
      organizationId: string,
      filter: { agent?: string; status?: Status },
      { before, limit }: { before?: string; limit: number },
    ) =>
      store.find(organizationId, executions, filter, {
        sort: [['_id', 'desc']],
        limit,
        ...(before !== undefined && { after: [before] }),
      }),

    /** Writes the record and its claim on a key. False: the key is another execution's. */
    async record(execution: Omit<Execution, 'leaseUntil'>, payload: ExecutionPayload, key?: RunKey): Promise<boolean> {
      const recorded = { ...execution, leaseUntil: await leaseUntil() };
      try {
        await store.apply(execution.organizationId, [
          insert(executions, recorded),
          insert(executionPayloads, payload),
          ...(key ? [insert(runKeys, key)] : []),
        ]);
        return true;
      } catch (error) {
        if (error instanceof DuplicateKeyError && error.collection === runKeys.name) return false;
        throw error;
      }
    },

    /** Takes back a record whose run never started; its key is free again. */
    withdraw: (execution: Execution) =>
      applied(execution.organizationId, [
        remove(executions, owned(execution)),
        remove(executionPayloads, { _id: execution._id }),
        ...freed(execution),
      ]),

    /** Extends the lease and shows a run that has begun as running. False: the run is no longer its owner's. */
    beat: async (execution: Execution) =>
      applied(execution.organizationId, [
        update(executions, owned(execution), {
          set: {
            ...(execution.startedAt !== null && { status: 'running', startedAt: execution.startedAt }),
            leaseUntil: await leaseUntil(),
          },
        }),
      ]),

    /** The owner's end of a run, with its events. False: the run was no longer its owner's, nothing is written. */
    finish: (
      ended: Execution,
      { output, messages }: Pick<ExecutionPayload, 'output' | 'messages'>,
      events: readonly Op[],
    ) =>
      applied(ended.organizationId, [
        update(executions, owned(ended), { set: endOf(ended) }),
        update(executionPayloads, { _id: ended._id }, { set: { output, messages } }),
        ...(ended.status === 'interrupted' ? freed(ended) : []),
        ...events,
      ]),

    /** The reaper's end of a run that it saw abandoned. False: a heartbeat or another end came first. */
    takeOver: async (abandoned: Execution, ended: Execution, events: readonly Op[]) =>
      applied(ended.organizationId, [
        update(executions, seen(abandoned), {
          set: { ...endOf(ended), epoch: abandoned.epoch + 1, leaseUntil: await leaseUntil() },
        }),
        ...freed(abandoned),
        ...events,
      ]),

    /** Leases the settlement of an ended run. False: another was first. */
    takeSettlement: async (unsettled: Execution) =>
      applied(unsettled.organizationId, [
        update(executions, seen(unsettled), { set: { leaseUntil: await leaseUntil() } }),
      ]),

    /** Its credits are settled: nothing is left to do. */
    settled: ({ organizationId, _id }: Execution) =>
      applied(organizationId, [update(executions, { _id, status: { in: ENDED } }, { set: { leaseUntil: null } })]),
  };
}

const seen = ({ _id, epoch, status, leaseUntil }: Execution): Expectation<Execution> => ({
  _id,
  epoch,
  status,
  leaseUntil,
});
const endOf = ({ status, error, chargeMicros, steps, startedAt, finishedAt }: Execution): Partial<Execution> => ({
  status,
  error,
  chargeMicros,
  steps,
  startedAt,
  finishedAt,
});
const freed = ({ runKeyId }: Execution): Op[] =>
  runKeyId === null ? [] : [remove(runKeys, { _id: runKeyId }, { optional: true })];
