import { DAY_MS } from '../core/clock.ts';
import { ServiceError } from '../core/errors.ts';

/**
 * The event port. Two engines carry it (a SQLite file, Kafka); one acceptance suite holds both to these rules:
 * delivery at least once per group, in publish order per key as long as one relay publishes; a consumer drops
 * repeats by event id and goes by `sequence`, never by arrival.
 */
export interface CloudEvent {
  specversion: '1.0';
  /** UUIDv7, made with the change that it tells of. */
  id: string;
  /** "/memory", "/agents" ... */
  source: string;
  /** "agent.execution.finished.v1" ... */
  type: string;
  /** What it is about: "executions/0192…". */
  subject: string;
  /** ISO-8601 UTC. */
  time: string;
  datacontenttype: 'application/json';
  organizationid: string;
  /** Key of the partition: the organization. */
  partitionkey: string;
  /** Rises by subject; a lower one that arrives later is out of date. */
  sequence: number;
  data: Record<string, unknown>;
}

/** Every topic, and how long its events are kept, at least, in milliseconds. */
export const RETENTION_MS = {
  'agent.execution.v1': 7 * DAY_MS,
  'audit.v1': 30 * DAY_MS,
  'credits.ledger.v1': 90 * DAY_MS,
  'memory.change.v1': 7 * DAY_MS,
} as const;
export type Topic = keyof typeof RETENTION_MS;
export const TOPICS = Object.keys(RETENTION_MS) as Topic[];
/** Dead letters are there to be looked at and replayed. */
export const DEAD_LETTER_RETENTION_MS = 30 * DAY_MS;

/** No event is larger, in bytes of its JSON: they carry names, never content. Every engine takes this much. */
export const MAX_EVENT_BYTES = 65_536;

/** The bus takes some events for too large; the others of the same call are durable. */
export class EventsTooLargeError extends ServiceError {
  readonly ids: readonly string[];
  constructor(message: string, ids: readonly string[]) {
    super('INTERNAL', message);
    this.ids = ids;
  }
}

export interface Subscription {
  /** Stops after the handler that is running. */
  stop(): Promise<void>;
}

export interface SubscribeOptions {
  /** A handler that fails this often on one event sends it to the dead letters. */
  maxAttempts: number;
  retryDelayMs: number;
}

export type EventHandler = (event: CloudEvent) => Promise<void>;

export interface EventBus {
  /** Resolves when the events are durable. A repeat of an id may be stored again. @throws EventsTooLargeError */
  publish(topic: Topic, events: readonly CloudEvent[]): Promise<void>;
  /** Each event goes to one member of the group; its offset is committed after the handler resolved. */
  subscribe(topic: Topic, group: string, handler: EventHandler, options: SubscribeOptions): Promise<Subscription>;
  /**
   * Hands the group's dead letters to the handler once more, oldest first, one caller at a time. Those that succeed are dead
   * letters no longer; the first that fails rejects with its error, and it and the rest stay. Resolves to their number.
   */
  replay(topic: Topic, group: string, handler: EventHandler): Promise<number>;
  close(): Promise<void>;
}
