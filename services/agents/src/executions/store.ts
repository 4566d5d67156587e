import type { KnownReason } from 'platform/core/errors.ts';
import type { Actor, Principal } from 'platform/core/principal.ts';
import {
  collection,
  insert,
  remove,
  update,
  DuplicateKeyError,
  ExpectationFailedError,
  type Expectation,
  type FindOptions,
  type Op,
  type OrganizationDocument,
  type Store,
} from 'platform/store/store.ts';
import type { Usage } from '../runtimes/rules.ts';
import type { Usage as StoredUsage } from '../usage/store.ts';
import { ACTIVE, ENDED, executionBytes, payloadBytes, resultBytes, type Status } from './rules.ts';

/** An execution without its payload, as lists read it. Its `_id` is also the id of its reservation of credits. */
export interface ExecutionRecord extends OrganizationDocument {
  sessionId: string;
  agent: string;
  agentVersion: number;
  status: Status;
  error: { reason: KnownReason; message: string } | null;
  actor: Actor;
  chargeMicros: number | null;
  /** Null until the run has ended. A release before usage by unit wrote `steps` and `cpuMs` in its place. */
  usage?: Usage | null;
  steps?: number | null;
  cpuMs?: number | null;
  requestId: string;
  /** Of the request that began it, if that is traced. */
  traceId?: string;
  /** `_id` of its claim on an idempotency key; null without a key. */
  runKeyId: string | null;
  createdAt: string;
  startedAt: string | null;
  finishedAt: string | null;
  /** The process that runs it. The reaper takes a run over by raising the epoch, after which the owner cannot write. */
  owner: string;
  epoch: number;
  /** Store time in milliseconds after which the reaper takes over; null when the run is ended and settled. */
  leaseUntil: number | null;
  /** When somebody asked for its end, ISO-8601; absent unless somebody has. */
  cancelRequestedAt?: string;
  /** What usage counts of it. Absent while it is not counted: a release before byte counts wrote it. */
  bytes?: number;
}

/** The large and confidential part of an execution: a second document with the same `_id` and a shorter retention. */
export interface ExecutionPayloadRecord extends OrganizationDocument {
  /** JSON text. */
  args: string;
  /** JSON text; null until the run succeeds. */
  output: string | null;
  /** JSON text of an array. */
  messages: string;
  createdAt: string;
  /** As in ExecutionRecord. */
  bytes?: number;
}

const NO_RESULT = { output: null, messages: '[]' } as const;

/** The claim of an execution on an idempotency key. */
export interface RunKeyRecord extends OrganizationDocument {
  key: string;
  /** SHA-256 of the canonical request, hexadecimal. */
  requestHash: string;
  executionId: string;
  createdAt: string;
}

export const EXECUTIONS = collection<ExecutionRecord>('executions', {
  scope: 'organization',
  columns: {
    ...{ _id: 'id', agent: 'text', status: 'text', epoch: 'number', leaseUntil: 'number', bytes: 'number' },
    ...{ createdAt: 'text', startedAt: 'text' },
  },
  indexes: [
    { fields: ['agent', 'status'], few: true },
    { fields: ['status'], few: true },
  ],
  platformIndexes: [
    { fields: ['leaseUntil'], only: 'present' },
    { fields: ['bytes'], only: 'null' },
  ],
});
export const EXECUTION_PAYLOADS = collection<ExecutionPayloadRecord>('execution_payloads', {
  scope: 'organization',
  columns: { _id: 'id', bytes: 'number', createdAt: 'text', messages: 'long', args: 'long', output: 'long' },
  platformIndexes: [{ fields: ['bytes'], only: 'null' }],
});
export const RUN_KEYS = collection<RunKeyRecord>('run_keys', {
  scope: 'organization',
  indexes: [{ fields: ['key'], unique: true }],
});

export type Executions = ReturnType<typeof openExecutions>;

/**
 * Each write to an execution expects the state that its caller saw, and resolves to false when that has changed. It
 * counts the stored bytes that it adds or removes in its own batch.
 * @param leaseUntil end of a lease that begins now: store time in milliseconds
 */
export function openExecutions(store: Store, usage: StoredUsage, leaseUntil: () => Promise<number>) {
  /** False when an expectation failed, because another process wrote first. */
  const applied = (batch: Promise<void>): Promise<boolean> =>
    batch.then(
      () => true,
      (error: unknown) => {
        if (error instanceof ExpectationFailedError) return false;
        throw error;
      },
    );
  const stillOwned = ({ _id, owner, epoch }: ExecutionRecord): Expectation<ExecutionRecord> => ({
    _id,
    owner,
    epoch,
    status: { in: ACTIVE },
  });

  return {
    byId: (organizationId: string, id: string) => store.findOne(organizationId, EXECUTIONS, { _id: id }),
    payloadById: (
      organizationId: string,
      id: string,
      options?: Pick<FindOptions<ExecutionPayloadRecord>, 'maxBytes'>,
    ) => store.findOne(organizationId, EXECUTION_PAYLOADS, { _id: id }, options),
    runKeyByKey: (organizationId: string, key: string) => store.findOne(organizationId, RUN_KEYS, { key }),
    /** Newest first, starting after the id `before`. */
    list: (
      organizationId: string,
      filter: { agent?: string; status?: Status },
      { before, limit }: { before?: string; limit: number },
    ) =>
      store.find(organizationId, EXECUTIONS, filter, {
        sort: [['_id', 'desc']],
        limit,
        ...(before !== undefined && { after: [before] }),
      }),

    /**
     * Writes a new execution and its claim on an idempotency key. False: another execution has claimed the key.
     * @throws ServiceError TIER_LIMIT when the stored bytes would exceed the limit `execution_bytes`
     */
    async create(
      execution: ExecutionRecord,
      { args, ...started }: Omit<ExecutionPayloadRecord, 'output' | 'messages' | 'bytes'>,
      key: RunKeyRecord | undefined,
      principal: Principal,
    ): Promise<boolean> {
      const leased = { ...execution, leaseUntil: await leaseUntil(), bytes: executionBytes(execution) };
      const payload = { ...started, args, ...NO_RESULT, bytes: payloadBytes({ args, ...NO_RESULT }) };
      const ops = [
        insert(EXECUTIONS, leased),
        insert(EXECUTION_PAYLOADS, payload),
        ...(key ? [insert(RUN_KEYS, key)] : []),
      ];
      try {
        await usage.grow(principal, { ops, bytes: leased.bytes + payload.bytes });
        return true;
      } catch (error) {
        if (error instanceof DuplicateKeyError && error.collection === RUN_KEYS.name) return false;
        throw error;
      }
    },

    /**
     * Removes an execution that never started; its key is free again. False: this process no longer owns it, or
     * somebody has asked for its end.
     */
    async withdraw(execution: ExecutionRecord): Promise<boolean> {
      const { organizationId, _id } = execution;
      const payload = await store.findOne(organizationId, EXECUTION_PAYLOADS, { _id });
      const bytes = -executionBytes(execution) - (payload?.bytes ?? 0);
      const ops = [
        remove(EXECUTIONS, { ...stillOwned(execution), cancelRequestedAt: null }),
        remove(EXECUTION_PAYLOADS, { _id }),
        ...freeKey(execution),
      ];
      return applied(usage.change(organizationId, { ops, bytes }));
    },

    /** Extends the lease, and sets a run that has started to `running`. False: this process no longer owns the run. */
    extendLease: async (execution: ExecutionRecord) =>
      applied(
        store.apply(execution.organizationId, [
          update(EXECUTIONS, stillOwned(execution), {
            set: {
              ...(execution.startedAt !== null && { status: 'running', startedAt: execution.startedAt }),
              leaseUntil: await leaseUntil(),
            },
          }),
        ]),
      ),

    /** Notes that the run shall end, for its owner. False: it has ended. */
    requestCancel: ({ _id, organizationId }: ExecutionRecord, cancelRequestedAt: string, events: readonly Op[]) =>
      applied(
        store.apply(organizationId, [
          update(EXECUTIONS, { _id, status: { in: ACTIVE } }, { set: { cancelRequestedAt } }),
          ...events,
        ]),
      ),

    /** Those of these executions that somebody has asked to end. */
    async toBeCancelled(organizationId: string, ids: readonly string[]): Promise<string[]> {
      const found = await store.find(organizationId, EXECUTIONS, { _id: { in: ids } });
      return found.filter(({ cancelRequestedAt }) => cancelRequestedAt !== undefined).map(({ _id }) => _id);
    },

    /**
     * The owner ends its run, with its events. False, and nothing is written: it no longer owns the run, or somebody
     * has asked for the end of the run, which therefore ends as cancelled, or as interrupted by the platform.
     */
    finish(
      ended: ExecutionRecord,
      { output, messages }: Pick<ExecutionPayloadRecord, 'output' | 'messages'>,
      events: readonly Op[],
    ): Promise<boolean> {
      const errorBytes = executionBytes(ended) - executionBytes({ error: null });
      const growth = resultBytes({ output, messages }) - resultBytes(NO_RESULT);
      const isStopped = ended.status === 'cancelled' || ended.status === 'interrupted';
      const where = { ...stillOwned(ended), ...(!isStopped && { cancelRequestedAt: null }) };
      const ops = [
        update(EXECUTIONS, where, { set: endFields(ended), increment: { bytes: errorBytes } }),
        update(EXECUTION_PAYLOADS, { _id: ended._id }, { set: { output, messages }, increment: { bytes: growth } }),
        ...(ended.status === 'interrupted' ? freeKey(ended) : []),
        ...events,
      ];
      return applied(usage.change(ended.organizationId, { ops, bytes: errorBytes + growth }));
    },

    /** The reaper ends an abandoned run. False: a heartbeat or another end was written first. */
    async takeOver(abandoned: ExecutionRecord, ended: ExecutionRecord, events: readonly Op[]): Promise<boolean> {
      const bytes = abandoned.bytes === undefined ? 0 : executionBytes(ended) - abandoned.bytes;
      const ops = [
        update(EXECUTIONS, asRead(abandoned), {
          set: { ...endFields(ended), epoch: abandoned.epoch + 1, leaseUntil: await leaseUntil() },
          ...(bytes !== 0 && { increment: { bytes } }),
        }),
        ...freeKey(abandoned),
        ...events,
      ];
      return applied(usage.change(ended.organizationId, { ops, bytes }));
    },

    /** The reaper leases the settlement of an ended run. False: another reaper was first. */
    leaseSettlement: async (unsettled: ExecutionRecord) =>
      applied(
        store.apply(unsettled.organizationId, [
          update(EXECUTIONS, asRead(unsettled), { set: { leaseUntil: await leaseUntil() } }),
        ]),
      ),
  };
}

/** What an ended run has used; null before. */
export const usageOf = ({ usage, steps, cpuMs }: ExecutionRecord): Usage | null =>
  usage ?? (typeof steps === 'number' ? { steps, ...(typeof cpuMs === 'number' && { cpuMs }) } : null);

/** Marks an ended run as settled, which ends its lease. */
export const settledOp = ({ _id, organizationId }: Pick<ExecutionRecord, '_id' | 'organizationId'>): Op =>
  update(EXECUTIONS, { _id, organizationId, status: { in: ENDED } }, { set: { leaseUntil: null } }, { optional: true });

export const asRead = ({ _id, epoch, status, leaseUntil, bytes }: ExecutionRecord): Expectation<ExecutionRecord> => ({
  _id,
  epoch,
  status,
  leaseUntil,
  bytes: bytes ?? null,
});
/** What an end writes: all but what a run has from its begin, its owner and lease, and what others write meanwhile. */
function endFields(ended: ExecutionRecord): Partial<ExecutionRecord> {
  const { _id, organizationId, sessionId, agent, agentVersion, actor, requestId, traceId, runKeyId, ...later } = ended;
  const { createdAt, owner, epoch, leaseUntil, cancelRequestedAt, bytes, steps, cpuMs, ...fields } = later;
  return fields;
}
const freeKey = ({ runKeyId }: ExecutionRecord): Op[] =>
  runKeyId === null ? [] : [remove(RUN_KEYS, { _id: runKeyId }, { optional: true })];
