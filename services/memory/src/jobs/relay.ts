import { relayJob } from 'platform/events/relay.ts';
import type { Job } from 'platform/jobs/jobs.ts';
import type { Deps } from '../deps.ts';

/** Publishes change events and audit entries from the outbox to the event log. */
export const relay = ({
  platformStore,
  bus,
  log,
  config,
}: Pick<Deps, 'platformStore' | 'bus' | 'log' | 'config'>): Job =>
  relayJob({ platformStore, bus, log, intervalMs: config.RELAY_INTERVAL_MS });
