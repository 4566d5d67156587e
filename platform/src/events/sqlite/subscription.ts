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

/** So many events are handled together; more if the last block has more. */
const BATCH = 200;

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
  /** `until`: in milliseconds since 1970, at least. */
  let held: (TopicLease & { until: number }) | undefined;
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
    const lease = await ensureLease();
    if (!lease) return false;
    const renewal = setInterval(
      () =>
        void events
          .extend(lease, until())
          .catch((error: unknown) => log.warn({ error }, 'the lease of an event consumer could not be renewed')),
      leaseMs / 3,
    ).unref();
    try {
      const batch = await events.after(topic, lease.seq, BATCH);
      if (await consumeTogether(lease, batch)) return true;
      for (const logged of batch) if (stopping.signal.aborted || !(await consume(lease, logged))) break;
    } finally {
      clearInterval(renewal);
    }
    return true;
  }

  /** The lease is kept between batches, so that a batch costs no write beside its own. */
  async function ensureLease(): Promise<TopicLease | undefined> {
    const now = Date.now();
    if (held && held.until - now > leaseMs / 2) return held;
    const taken = await events.take(topic, group, held?.epoch ?? 0, now, now + leaseMs);
    held = taken && { ...taken, until: now + leaseMs };
    return held;
  }

  /** Notes that the events up to `seq` are handled. False when the lease was lost. */
  async function noted(lease: TopicLease, seq: number, write: (untilMs: number) => Promise<boolean>): Promise<boolean> {
    const untilMs = until();
    const kept = await write(untilMs);
    held = kept ? { ...lease, seq, until: untilMs } : undefined;
    return kept;
  }

  /** False when the events must be consumed one by one. */
  async function consumeTogether(lease: TopicLease, batch: readonly LoggedEvent[]): Promise<boolean> {
    const { seq } = batch.at(-1) ?? lease;
    if (!member.handleTogether || batch.length < 2) return false;
    try {
      await member.handleTogether(batch.map(({ event }) => parseEvent(event)));
    } catch (error) {
      log.warn({ error, events: batch.length }, 'a handler of several events failed; they are handled one by one');
      return false;
    }
    await noted(lease, seq, (untilMs) => events.commit(lease, seq, untilMs));
    return true;
  }

  /** True when the event is handled or a dead letter now; false when the lease was lost or this member is stopping. */
  async function consume(lease: TopicLease, logged: LoggedEvent): Promise<boolean> {
    const { seq } = logged;
    for (let attempt = 1; ; attempt++) {
      try {
        await member.handler(parseEvent(logged.event));
      } catch (error) {
        log.warn({ error, seq, attempt }, 'an event handler failed');
        if (attempt >= member.maxAttempts || error instanceof RejectedEventError)
          return noted(lease, seq, (untilMs) =>
            events.bury(lease, logged, String(error), isoTime(Date.now()), untilMs),
          );
        await delay(member.retryDelayMs, undefined, { signal: stopping.signal }).catch(() => undefined);
        if (stopping.signal.aborted || !(await events.extend(lease, until()))) return false;
        continue;
      }
      return noted(lease, seq, (untilMs) => events.commit(lease, seq, untilMs));
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
