import { DAY_MS, isoTime } from 'platform/core/clock.ts';
import type { Job } from 'platform/jobs/jobs.ts';
import { remove, type Collection, type Document, type Filter } from 'platform/store/store.ts';
import type { Deps } from '../deps.ts';
import { executionPayloads, executions, runKeys } from '../executions/store.ts';

type RetentionDeps = Pick<Deps, 'platformStore' | 'clock' | 'config'>;

const BATCH = 200;

/** Idempotency keys, then payloads, then executions go when their time is over; an execution that is not settled stays. */
export const retention = (deps: RetentionDeps): Job => ({
  name: 'retention',
  description: 'Removes idempotency keys, payloads and executions that are past their retention.',
  intervalMs: deps.config.RETENTION_INTERVAL_MS,
  async run(signal) {
    const { IDEMPOTENCY_KEY_TTL_MS, PAYLOAD_RETENTION_DAYS, EXECUTION_RETENTION_DAYS } = deps.config;
    const past = (ageMs: number) => ({ createdAt: { lt: isoTime(deps.clock.now() - ageMs) } });
    return (
      (await removeAll(deps, runKeys, past(IDEMPOTENCY_KEY_TTL_MS), signal)) +
      (await removeAll(deps, executionPayloads, past(PAYLOAD_RETENTION_DAYS * DAY_MS), signal)) +
      (await removeAll(deps, executions, { ...past(EXECUTION_RETENTION_DAYS * DAY_MS), leaseUntil: null }, signal))
    );
  },
});

async function removeAll<D extends Document>(
  { platformStore }: RetentionDeps,
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
