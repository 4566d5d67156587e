import { DAY_MS, HOUR_MS } from 'platform/core/clock.ts';
import { firstIdOf } from 'platform/core/ids.ts';
import type { CountedDocument } from 'platform/jobs/count-bytes.ts';
import type { Job } from 'platform/jobs/jobs.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { remove, type Collection, type Document, type Filter } from 'platform/store/store.ts';
import { CALLBACK_TOKENS } from '../callback-tokens/store.ts';
import type { Deps } from '../deps.ts';
import { EXECUTION_PAYLOADS, EXECUTIONS, RUN_KEYS } from '../executions/store.ts';

type Needs = Pick<Deps, 'platformStore' | 'usage' | 'clock' | 'config'>;

const BATCH = 200;
/** Counted documents may hold large texts, and a batch is in memory. */
const COUNTED_BATCH = 20;
/** Ids begin with the time at which they were made: the primary key has this order. Any other would read all. */
const OLDEST = [['_id', 'asc']] as const;

/**
 * Removes idempotency keys, callback tokens, payloads and executions, each at an age of their own. An execution that is
 * not settled is kept (its `leaseUntil` is not null).
 */
export const retentionJob = (deps: Needs): Job => ({
  name: 'retention',
  description: 'Removes idempotency keys, callback tokens, payloads and executions that are past their retention.',
  intervalMs: deps.config.RETENTION_INTERVAL_MS,
  async run(signal) {
    const { IDEMPOTENCY_KEY_TTL_MS, PAYLOAD_RETENTION_DAYS, EXECUTION_RETENTION_DAYS } = deps.config;
    const olderThan = (ageMs: number) => ({ _id: { lt: firstIdOf(deps.clock.now() - ageMs) } });
    const expired = { ...olderThan(EXECUTION_RETENTION_DAYS * DAY_MS), leaseUntil: null };
    return (
      (await removeKeys(deps, RUN_KEYS, olderThan(IDEMPOTENCY_KEY_TTL_MS), signal)) +
      (await removeKeys(deps, CALLBACK_TOKENS, olderThan(HOUR_MS), signal)) +
      (await removeCounted(deps, EXECUTION_PAYLOADS, olderThan(PAYLOAD_RETENTION_DAYS * DAY_MS), signal)) +
      (await removeCounted(deps, EXECUTIONS, expired, signal))
    );
  },
});

async function removeKeys<D extends Document>(
  { platformStore }: Needs,
  collection: Collection<D>,
  filter: Filter<D>,
  signal: AbortSignal,
): Promise<number> {
  let count = 0;
  while (!signal.aborted) {
    const batch = await platformStore.find(collection, filter, { sort: OLDEST, limit: BATCH });
    if (batch.length === 0) break;
    await platformStore.apply(batch.map(({ _id }) => remove(collection, { _id }, { optional: true })));
    count += batch.length;
  }
  return count;
}

/** Each batch removes documents of one organization, and what usage counts of them. */
async function removeCounted<D extends CountedDocument>(
  { platformStore, usage }: Needs,
  collection: Collection<D>,
  filter: Filter<D>,
  signal: AbortSignal,
): Promise<number> {
  const removeBatch = async (): Promise<number> => {
    const batch = await platformStore.find(collection, filter, { sort: OLDEST, limit: COUNTED_BATCH });
    for (const [organizationId, documents] of Map.groupBy(batch, (document) => document.organizationId)) {
      const bytes = documents.reduce((sum, document) => sum + (document.bytes ?? 0), 0);
      const removals = documents.map((document) =>
        remove(collection, { _id: document._id, bytes: document.bytes ?? null }),
      );
      await usage.change(organizationId, { ops: removals, bytes: -bytes });
    }
    return batch.length;
  };
  let count = 0;
  while (!signal.aborted) {
    const removed = await retryOnConflict(signal, removeBatch);
    if (removed === 0) break;
    count += removed;
  }
  return count;
}
