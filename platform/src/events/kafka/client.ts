import { Kafka, logLevel, type KafkaConfig } from 'kafkajs';
import { unavailable, type ServiceError } from '../../core/errors.ts';
import type { Log } from '../../core/log.ts';
import type { Topic } from '../bus.ts';
import type { KafkaSecurity } from './security.ts';

export interface KafkaOptions {
  /** "host:port" each. */
  brokers: string[];
  /** Beginning of the names of topics and groups. */
  prefix: string;
  clientId: string;
  /** All that this process publishes. */
  publishes: readonly Topic[];
  /** Of every topic; its dead letters are one partition. */
  partitions: number;
  replication: number;
  /** Of one publish, and of one request of a consumer. */
  timeoutMs: number;
  log: Log;
  /** Default: neither TLS nor credentials. */
  security?: KafkaSecurity;
  /** A member of a group that is not heard of for so long is replaced. */
  sessionTimeoutMs?: number;
}

const CONNECT_MS = 2_000;

/** kafkajs with bounded patience: its own would wait for minutes, or for ever. */
export function kafkaClient({ brokers, clientId, timeoutMs, log, security }: KafkaOptions): Kafka {
  withoutNegativeTimeouts();
  return new Kafka({
    brokers,
    clientId,
    ...security,
    connectionTimeout: Math.min(CONNECT_MS, timeoutMs),
    authenticationTimeout: timeoutMs,
    requestTimeout: timeoutMs,
    retry: { retries: 3, initialRetryTime: 100, maxRetryTime: 1_000 },
    logLevel: logLevel.WARN,
    logCreator: quiet(log),
  });
}

// What kafkajs gives up on rejects or crashes, and is logged where that is met; what it logs as an error it is about to try again.
const quiet =
  (log: Log): KafkaConfig['logCreator'] =>
  () =>
  ({ namespace, log: { message, error, broker, groupId } }) =>
    log.debug({ from: namespace, broker, groupId, error: error === undefined ? undefined : String(error) }, message);

let filtered = false;
/** kafkajs hands negative delays to setTimeout, which takes them for 1 ms; Node 24 warns of each, and nobody can do anything about it. */
export function withoutNegativeTimeouts(): void {
  if (filtered) return;
  filtered = true;
  const emitWarning = process.emitWarning.bind(process) as (...args: unknown[]) => void;
  process.emitWarning = (...args: unknown[]) => {
    if (args[1] !== 'TimeoutNegativeWarning') emitWarning(...args);
  };
}

/** The error below those that kafkajs wraps around it. */
export function rootOf(error: unknown): Error & { type?: string } {
  const { cause } = error as Error;
  return cause instanceof Error ? rootOf(cause) : (error as Error);
}

export const kafkaUnavailable = (cause: unknown): ServiceError =>
  unavailable(`Kafka does not take events (${rootOf(cause).message})`, cause);
