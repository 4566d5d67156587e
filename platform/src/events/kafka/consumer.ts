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
  /** Partitions at the same time; one partition's messages always come one by one. */
  concurrency: number;
  /** Its abort ends the consumption after the messages that are being handled. */
  signal: AbortSignal;
  /** Called at every (re)join of the group. */
  joined?(partitions: readonly number[]): void;
  /** True when the group is past the message. What it throws sends the consumer back to the last commit. `heartbeat` throws when another member is to have the partition. */
  handle(message: Received, heartbeat: () => Promise<void>): Promise<boolean>;
}

/** Sessions without a sign of life after which a consumer is given up: more than a rebalance takes. */
const SILENT_SESSIONS = 3;
const REBALANCE_SESSIONS = 2;
const FETCH_WAIT_MS = 500;

/**
 * One consumer from its connection to its end: resolves when the signal aborts; rejects when it crashed or fell silent, as
 * kafkajs consumers do after rebalances and restarts of a broker. The caller then begins with a new one.
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
  const over = Promise.withResolvers<void>();
  over.promise.catch(() => undefined);
  const stop = (): void => over.resolve();
  signal.addEventListener('abort', stop);
  if (signal.aborted) stop();

  const { HEARTBEAT, FETCH, GROUP_JOIN, CRASH } = consumer.events;
  let aliveAt = performance.now();
  for (const sign of [HEARTBEAT, FETCH, GROUP_JOIN] as const)
    consumer.on(sign as typeof FETCH, () => {
      aliveAt = performance.now();
    });
  consumer.on(GROUP_JOIN, ({ payload }) => joined?.(payload.memberAssignment[topic] ?? []));
  consumer.on(CRASH, ({ payload }) => over.reject(payload.error));
  const watchdog = setInterval(() => {
    const silentMs = performance.now() - aliveAt;
    if (silentMs > SILENT_SESSIONS * sessionTimeoutMs)
      over.reject(new Error(`no sign of life for ${Math.round(silentMs)} ms`));
  }, sessionTimeoutMs / 3);

  let ended = false;
  const running = new Set<Promise<boolean>>();
  async function begin(): Promise<void> {
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
        async function done(message: KafkaMessage): Promise<boolean> {
          const beat = setInterval(() => void heartbeat().catch(() => undefined), sessionTimeoutMs / 3);
          const handled = await handle({ ...message, topic, partition }, heartbeat).finally(() => clearInterval(beat));
          // straight to the coordinator: consumer.commitOffsets does nothing once the consumer is stopping
          if (handled)
            await commitOffsetsIfNecessary({
              topics: [{ topic, partitions: [{ partition, offset: String(BigInt(message.offset) + 1n) }] }],
            });
          return handled;
        }
        for (const message of messages) {
          if (ended || signal.aborted || !isRunning() || isStale()) return;
          const turn = done(message);
          running.add(turn);
          if (!(await turn.finally(() => running.delete(turn)))) return;
          resolveOffset(message.offset);
          await heartbeat();
        }
      },
    });
  }

  const beginning = begin();
  try {
    await Promise.race([beginning, over.promise]);
    await over.promise;
  } finally {
    ended = true;
    clearInterval(watchdog);
    signal.removeEventListener('abort', stop);
    await Promise.allSettled(running);
    // not before it has joined: kafkajs cannot stop a consumer that is still about to, which would come back and hold partitions
    const left = beginning.catch(() => undefined).then(() => consumer.disconnect());
    await withTimeout(left, timeoutMs).catch(() => undefined);
  }
}
