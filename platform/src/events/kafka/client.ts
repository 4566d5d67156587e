import { Kafka, logLevel, type KafkaConfig } from 'kafkajs';
import { unavailable, type ServiceError } from '../../core/errors.ts';
import type { Log } from '../../core/log.ts';
import type { Topic } from '../bus.ts';
import { letIdleConnectionsSleep } from './idle-connections.ts';
import type { KafkaSecurity } from './security.ts';

export interface KafkaOptions {
  /** Each as "host:port". */
  brokers: string[];
  /** Put in front of the names of topics and groups. */
  prefix: string;
  clientId: string;
  /** All topics that this process publishes on. */
  publishes: readonly Topic[];
  /** Of every topic; a topic of dead letters has one. */
  partitions: number;
  replication: number;
  /** How long a dead letter is kept; default DEAD_LETTER_RETENTION_MS. */
  deadLetterRetentionMs?: number;
  /** For one publish, and for one request of a consumer. */
  timeoutMs: number;
  log: Log;
  /** Default: neither TLS nor credentials. */
  security?: KafkaSecurity;
  /** A member of a group that sends no heartbeat for this long is replaced. */
  sessionTimeoutMs?: number;
}

const CONNECT_MS = 2_000;

/** A kafkajs client with time-outs: by default kafkajs waits for minutes, or forever. */
export function kafkaClient({ brokers, clientId, timeoutMs, log, security }: KafkaOptions): Kafka {
  letIdleConnectionsSleep();
  return new Kafka({
    brokers,
    clientId,
    ...security,
    connectionTimeout: Math.min(CONNECT_MS, timeoutMs),
    authenticationTimeout: timeoutMs,
    requestTimeout: timeoutMs,
    retry: { retries: 3, initialRetryTime: 100, maxRetryTime: 1_000 },
    logLevel: logLevel.WARN,
    logCreator: debugLog(log),
  });
}

/**
 * Logs messages of kafkajs at level debug: it logs errors that it is about to retry. Where it gives up it rejects or
 * emits CRASH, and those are logged where they are handled.
 */
const debugLog =
  (log: Log): KafkaConfig['logCreator'] =>
  () =>
  ({ namespace, log: { message, error, broker, groupId } }) =>
    log.debug({ from: namespace, broker, groupId, error: error === undefined ? undefined : String(error) }, message);

/** The innermost cause of an error: kafkajs wraps errors several times. */
export function rootOf(error: unknown): Error & { type?: string } {
  const { cause } = error as Error;
  return cause instanceof Error ? rootOf(cause) : (error as Error);
}

export const kafkaUnavailable = (cause: unknown): ServiceError =>
  unavailable(`Kafka does not accept events (${rootOf(cause).message})`, cause);
