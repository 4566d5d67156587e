import type { EventBus } from 'platform/events/bus.ts';
import type { Job } from 'platform/jobs/jobs.ts';
import type { Deps } from '../deps.ts';

/** For the event file, of which auth takes care. Kafka removes what is past its retention by itself. */
export const eventRetentionJob = (
  { clock, config }: Pick<Deps, 'clock' | 'config'>,
  removeExpired: NonNullable<EventBus['removeExpired']>,
): Job => ({
  name: 'event-retention',
  description: 'Removes events and dead letters past their retention from the event file.',
  intervalMs: config.EVENT_RETENTION_INTERVAL_MS,
  run: (signal) => removeExpired(clock.now(), signal),
});
