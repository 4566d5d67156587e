import { DAY_MS, isoTime } from 'platform/core/clock.ts';
import type { Job } from 'platform/jobs/jobs.ts';
import { remove, type Collection, type Document, type Filter } from 'platform/store/store.ts';
import type { Deps } from '../deps.ts';
import { EXECUTION_PAYLOADS, EXECUTIONS, RUN_KEYS } from '../executions/store.ts';

type Needs = Pick<Deps, 'platformStore' | 'clock' | 'config'>;

const BATCH = 200;

/**
 * Removes idempotency keys, payloads and executions, each at an age of their own. An execution that is not settled is
 * kept (its `leaseUntil` is not null).
 */
export const retentionJob = (deps: Needs): Job => ({
  name: 'retention',
  description: 'Removes idempotency keys, payloads and executions that are past their retention.',
  intervalMs: deps.config.RETENTION_INTERVAL_MS,
  async run(signal) {
    const { IDEMPOTENCY_KEY_TTL_MS, PAYLOAD_RETENTION_DAYS, EXECUTION_RETENTION_DAYS } = deps.config;
    const olderThan = (ageMs: number) => ({ createdAt: { lt: isoTime(deps.clock.now() - ageMs) } });
    const expired = { ...olderThan(EXECUTION_RETENTION_DAYS * DAY_MS), leaseUntil: null };
    return (
      (await removeAll(deps, RUN_KEYS, olderThan(IDEMPOTENCY_KEY_TTL_MS), signal)) +
      (await removeAll(deps, EXECUTION_PAYLOADS, olderThan(PAYLOAD_RETENTION_DAYS * DAY_MS), signal)) +
      (await removeAll(deps, EXECUTIONS, expired, signal))
    );
  },
});

async function removeAll<D extends Document>(
  { platformStore }: Needs,
  collection: Collection<D>,
  filter: Filter<D>,
  signal: AbortSignal,
): Promise<number> {
  let count = 0;
  while (!signal.aborted) {
    const batch = await platformStore.find(collection, filter, { limit: BATCH });
    if (batch.length === 0) break;
    await platformStore.apply(batch.map(({ _id }) => remove(collection, { _id }, { optional: true })));
    count += batch.length;
  }
  return count;
}
