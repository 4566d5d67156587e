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
  /** Partitions that are handled at the same time; the messages of one partition are always handled one by one. */
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
}

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
        async function handleAndCommit(message: KafkaMessage): Promise<boolean> {
          const beat = setInterval(() => void heartbeat().catch(() => undefined), sessionTimeoutMs / 3);
          const handled = await handle({ ...message, topic, partition }, heartbeat).finally(() => clearInterval(beat));
          // Not consumer.commitOffsets: that does nothing once the consumer is stopping.
          if (handled)
            await commitOffsetsIfNecessary({
              topics: [{ topic, partitions: [{ partition, offset: String(BigInt(message.offset) + 1n) }] }],
            });
          return handled;
        }
        for (const message of messages) {
          if (ended || signal.aborted || !isRunning() || isStale()) return;
          const handling = handleAndCommit(message);
          running.add(handling);
          if (!(await handling.finally(() => running.delete(handling)))) return;
          resolveOffset(message.offset);
          await heartbeat();
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
