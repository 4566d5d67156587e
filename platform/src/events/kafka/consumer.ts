import type { Kafka, KafkaMessage } from 'kafkajs';
import { withTimeout } from '../../core/with-timeout.ts';

export type Received = KafkaMessage & {
  topic: string;
  partition: number;
};

export interface Consumption {
  kafka: Kafka;
  topic: string;
  groupId: string;
  timeoutMs: number;
  sessionTimeoutMs: number;
  /** Partitions that are handled at the same time; the messages of one partition are handled in order. */
  concurrency: number;
  /** Aborting it ends the consumption once the messages that are being handled are finished. */
  signal: AbortSignal;
  /** Called at every (re)join of the group. */
  joined?(partitions: readonly number[]): void;
  /**
   * Resolves to true when the message is handled and its offset is to be committed. When it throws, the consumer
   * starts again from the last commit. `heartbeat` throws when another member gets the partition.
   */
  handle(message: Received, heartbeat: () => Promise<void>): Promise<boolean>;
  /**
   * Resolves to true when all of these messages of one partition are handled, to false when none is and `handle` shall
   * have them one by one.
   */
  handleTogether?(messages: readonly Received[]): Promise<boolean>;
}

/** So many messages are handled together. */
const BATCH = 200;

/** After this many session time-outs without any activity a consumer is given up: longer than a rebalance takes. */
const MAX_SILENT_SESSIONS = 3;
const REBALANCE_SESSIONS = 2;
const FETCH_WAIT_MS = 500;

/**
 * Runs one consumer from its connection to its end. Resolves when the signal aborts. Rejects when the consumer
 * crashed or stopped working, as kafkajs consumers do after a rebalance or a restart of a broker; the caller then
 * starts a new one.
 */
export async function consume({
  kafka,
  topic,
  groupId,
  timeoutMs,
  sessionTimeoutMs,
  concurrency,
  signal,
  joined,
  handle,
  handleTogether = async () => false,
}: Consumption): Promise<void> {
  const consumer = kafka.consumer({
    groupId,
    sessionTimeout: sessionTimeoutMs,
    rebalanceTimeout: REBALANCE_SESSIONS * sessionTimeoutMs,
    heartbeatInterval: sessionTimeoutMs / 10,
    maxWaitTimeInMs: FETCH_WAIT_MS,
    allowAutoTopicCreation: false,
    retry: { restartOnFailure: async () => false },
  });
  const end = Promise.withResolvers<void>();
  end.promise.catch(() => undefined);
  const stop = (): void => end.resolve();
  signal.addEventListener('abort', stop);
  if (signal.aborted) stop();

  const { HEARTBEAT, FETCH, GROUP_JOIN, CRASH } = consumer.events;
  let lastActivityAt = performance.now();
  for (const activity of [HEARTBEAT, FETCH, GROUP_JOIN] as const)
    consumer.on(activity as typeof FETCH, () => {
      lastActivityAt = performance.now();
    });
  consumer.on(GROUP_JOIN, ({ payload }) => joined?.(payload.memberAssignment[topic] ?? []));
  consumer.on(CRASH, ({ payload }) => end.reject(payload.error));
  const watchdog = setInterval(() => {
    const silentMs = performance.now() - lastActivityAt;
    if (silentMs > MAX_SILENT_SESSIONS * sessionTimeoutMs)
      end.reject(new Error(`no activity for ${Math.round(silentMs)} ms`));
  }, sessionTimeoutMs / 3);

  let ended = false;
  const running = new Set<Promise<boolean>>();
  async function start(): Promise<void> {
    await consumer.connect();
    await consumer.subscribe({ topic, fromBeginning: true });
    await consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      partitionsConsumedConcurrently: concurrency,
      async eachBatch({
        batch: { partition, messages },
        heartbeat,
        commitOffsetsIfNecessary,
        resolveOffset,
        isRunning,
        isStale,
      }) {
        async function handleAndCommit(last: Received, handling: () => Promise<boolean>): Promise<boolean> {
          const beat = setInterval(() => void heartbeat().catch(() => undefined), sessionTimeoutMs / 3);
          const handled = await handling().finally(() => clearInterval(beat));
          // Not consumer.commitOffsets: that does nothing once the consumer is stopping.
          if (handled)
            await commitOffsetsIfNecessary({
              topics: [{ topic, partitions: [{ partition, offset: String(BigInt(last.offset) + 1n) }] }],
            });
          return handled;
        }
        /** False when the messages, the last of which is `last`, are not handled, or nothing more is to be. */
        async function goOn(last: Received, handling: () => Promise<boolean>): Promise<boolean> {
          if (ended || signal.aborted || !isRunning() || isStale()) return false;
          const handlingAndCommit = handleAndCommit(last, handling);
          running.add(handlingAndCommit);
          if (!(await handlingAndCommit.finally(() => running.delete(handlingAndCommit)))) return false;
          resolveOffset(last.offset);
          await heartbeat();
          return true;
        }
        const received = messages.map((message) => ({ ...message, topic, partition }));
        for (let at = 0; at < received.length; at += BATCH) {
          const together = received.slice(at, at + BATCH);
          if (together.length > 1 && (await goOn(together.at(-1)!, () => handleTogether(together)))) continue;
          for (const message of together) if (!(await goOn(message, () => handle(message, heartbeat)))) return;
        }
      },
    });
  }

  const starting = start();
  try {
    await Promise.race([starting, end.promise]);
    await end.promise;
  } finally {
    ended = true;
    clearInterval(watchdog);
    signal.removeEventListener('abort', stop);
    await Promise.allSettled(running);
    // Only after it has joined: kafkajs cannot stop a consumer that is still joining; it would join later and hold
    // partitions.
    const disconnected = starting.catch(() => undefined).then(() => consumer.disconnect());
    await withTimeout(disconnected, timeoutMs).catch(() => undefined);
  }
}
