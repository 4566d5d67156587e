import { setTimeout as delay } from 'node:timers/promises';
import type { Log } from '../../core/log.ts';
import { parseEvent, RejectedEventError, type EventHandler, type SubscribeOptions, type Subscription } from '../bus.ts';
import { consume, type Consumption, type Received } from './consumer.ts';
import { rootOf } from './client.ts';
import { bury } from './dead-letters.ts';
import type { Sender } from './sender.ts';

const RESTART_MS = 1_000;
/**
 * What brokers answer until their first group has a coordinator, which takes seconds (kafkajs keeps only the message).
 * It deserves a warning only if it lasts.
 */
const NO_COORDINATOR = /\bcoordinator\b/;
const QUIET_ENDS = 10;

export interface Member extends SubscribeOptions, Omit<Consumption, 'signal' | 'handle' | 'handleTogether'> {
  sender: Sender;
  log: Log;
  deadLetters: string;
  handler: EventHandler;
}

/** Consumes the topic as one member of its group until `stop`; starts a new consumer whenever one ends. */
export function startMember(member: Member): Subscription {
  const { sender, handler, maxAttempts, retryDelayMs, deadLetters, topic, groupId } = member;
  const log = member.log.child({ topic, group: groupId });
  const stopping = new AbortController();
  const { signal } = stopping;

  /** How often a consumer may still end without a warning because no coordinator is there yet. */
  let quietEnds = QUIET_ENDS;

  async function run(): Promise<void> {
    while (!signal.aborted) {
      const joined = (): number => (quietEnds = 0);
      await consume({ ...member, signal, handle, handleTogether, joined }).catch((error: unknown) => {
        const isQuiet = quietEnds-- > 0 && NO_COORDINATOR.test(rootOf(error).message);
        log[isQuiet ? 'debug' : 'warn']({ error }, 'the event consumer ended; a new one starts');
      });
      if (!signal.aborted) await delay(RESTART_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  async function handle(message: Received, heartbeat: () => Promise<void>): Promise<boolean> {
    for (let attempt = 1; ; attempt++) {
      try {
        await handler(parseEvent(String(message.value)));
        return true;
      } catch (error) {
        log.warn({ error, partition: message.partition, offset: message.offset, attempt }, 'an event handler failed');
        if (attempt >= maxAttempts || error instanceof RejectedEventError) {
          await bury(sender, deadLetters, groupId, message, error);
          return true;
        }
      }
      await delay(retryDelayMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return false;
      await heartbeat();
    }
  }

  async function handleTogether(messages: readonly Received[]): Promise<boolean> {
    if (!member.handleTogether) return false;
    try {
      await member.handleTogether(messages.map(({ value }) => parseEvent(String(value))));
      return true;
    } catch (error) {
      const [{ partition, offset }, events] = [messages[0]!, messages.length];
      log.warn({ error, partition, offset, events }, 'a handler of several events failed; they are handled one by one');
      return false;
    }
  }

  const ended = run();
  return {
    async stop() {
      stopping.abort();
      await ended;
    },
  };
}
