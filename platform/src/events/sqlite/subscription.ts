import { setTimeout as delay } from 'node:timers/promises';
import { isoTime } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import type { Notifier } from '../../core/notifier.ts';
import {
  parseEvent,
  RejectedEventError,
  type EventHandler,
  type SubscribeOptions,
  type Subscription,
  type Topic,
} from '../bus.ts';
import type { EventLog, LoggedEvent, TopicLease } from './event-log.ts';

const BATCH = 50;

export interface Member extends SubscribeOptions {
  events: EventLog;
  notifier: Notifier;
  log: Log;
  pollMs: number;
  leaseMs: number;
  topic: Topic;
  group: string;
  handler: EventHandler;
}

/** Consumes the topic as one member of its group: in order, while it holds the group's lease. */
export function startMember(member: Member): Subscription {
  const { events, notifier, pollMs, leaseMs, topic, group } = member;
  const log = member.log.child({ topic, group });
  const stopping = new AbortController();
  let held: TopicLease | undefined;
  const until = (): number => Date.now() + leaseMs;

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      const seen = notifier.count;
      const mayHaveMore = await consumeBatch().catch((error: unknown) =>
        log.error({ error }, 'the event file cannot be read'),
      );
      if (!mayHaveMore) await notifier.wait(seen, pollMs);
    }
    if (held)
      await events
        .extend(held, 0)
        .catch((error: unknown) => log.warn({ error }, 'the lease of an event consumer could not be released'));
  }

  /** False when there was no event for this member. */
  async function consumeBatch(): Promise<boolean> {
    const epoch = held?.epoch ?? 0;
    if (!(await events.waiting(topic, group, epoch, Date.now()))) return false;
    const lease = await events.take(topic, group, epoch, Date.now(), until());
    if (!lease) return false;
    held = lease;
    const renewal = setInterval(
      () =>
        void events
          .extend(lease, until())
          .catch((error: unknown) => log.warn({ error }, 'the lease of an event consumer could not be renewed')),
      leaseMs / 3,
    ).unref();
    try {
      for (const logged of await events.after(topic, lease.seq, BATCH)) {
        if (stopping.signal.aborted || !(await consume(lease, logged))) break;
      }
    } finally {
      clearInterval(renewal);
    }
    return true;
  }

  /** True when the event is handled or a dead letter now; false when the lease was lost or this member is stopping. */
  async function consume(lease: TopicLease, logged: LoggedEvent): Promise<boolean> {
    for (let attempt = 1; ; attempt++) {
      try {
        await member.handler(parseEvent(logged.event));
      } catch (error) {
        log.warn({ error, seq: logged.seq, attempt }, 'an event handler failed');
        if (attempt >= member.maxAttempts || error instanceof RejectedEventError)
          return events.bury(lease, logged, String(error), isoTime(Date.now()), until());
        await delay(member.retryDelayMs, undefined, { signal: stopping.signal }).catch(() => undefined);
        if (stopping.signal.aborted || !(await events.extend(lease, until()))) return false;
        continue;
      }
      return events.commit(lease, logged.seq, until());
    }
  }

  const ended = run();
  return {
    async stop() {
      stopping.abort();
      notifier.notify();
      await ended;
    },
  };
}
