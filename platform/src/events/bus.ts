import { parseJson } from '../core/parse-json.ts';
import { DAY_MS } from '../core/clock.ts';
import { ServiceError } from '../core/errors.ts';

/**
 * The event port. Two engines implement it (a SQLite file, Kafka); one acceptance suite tests both for these rules:
 * - Each group gets every event at least once, and the events of one key in publish order as long as one relay
 *   publishes.
 * - A consumer drops repeats by event id, and orders the events of a subject by `sequence`, never by arrival.
 */
export interface CloudEvent {
  specversion: '1.0';
  /** UUIDv7, made together with the change that the event reports. */
  id: string;
  /** "/memory", "/agents" ... */
  source: string;
  /** "agent.execution.finished.v1" ... */
  type: string;
  /** The resource that changed: "executions/0192…". */
  subject: string;
  /** ISO-8601 UTC. */
  time: string;
  datacontenttype: 'application/json';
  organizationid: string;
  /** The organization: its events are in order. */
  partitionkey: string;
  /** Rises with each event of a subject; an event that arrives after one with a higher number is out of date. */
  sequence: number;
  /** The trace of the request that made the change, if it is sampled (CloudEvents' extension for tracing). */
  traceparent?: string;
  data: Record<string, unknown>;
}

/** An event as it is published: JSON text, which the relay and the bus pass on as it is. */
export interface EventText {
  /** Of its outbox row, or of the event where there is no outbox. EventsTooLargeError names it by this. */
  id: string;
  /** Its `partitionkey`. */
  partitionKey: string;
  text: string;
}
export const eventText = (event: CloudEvent): EventText => ({
  id: event.id,
  partitionKey: event.partitionkey,
  text: JSON.stringify(event),
});

/** Those of traced requests, parsed. */
export const tracedOf = (events: readonly EventText[]): CloudEvent[] =>
  events
    .filter(({ text }) => text.includes('"traceparent":'))
    .map(({ text }) => parseJson(text) as CloudEvent)
    .filter(({ traceparent }) => traceparent !== undefined);

/** By topic: for how long its events are kept at least, in milliseconds. */
export const RETENTION_MS = {
  'agent.execution.v1': 7 * DAY_MS,
  'audit.v1': 30 * DAY_MS,
  'credits.ledger.v1': 90 * DAY_MS,
  'memory.change.v1': 7 * DAY_MS,
} as const;
export type Topic = keyof typeof RETENTION_MS;
export const TOPICS = Object.keys(RETENTION_MS) as Topic[];
/** Default: long enough for people to look at dead letters and replay them. */
export const DEAD_LETTER_RETENTION_MS = 30 * DAY_MS;

/** Largest event in bytes of JSON, which every engine accepts. Events carry names and ids, never content. */
export const MAX_EVENT_BYTES = 65_536;

/** The bus rejected some events as too large; the others of the same call are durable. */
export class EventsTooLargeError extends ServiceError {
  /** Ids of the rejected events. */
  readonly ids: readonly string[];
  constructor(message: string, ids: readonly string[]) {
    super('INTERNAL', message);
    this.ids = ids;
  }
}

/** A handler throws it for an event that it will never accept: the event becomes a dead letter without a retry. */
export class RejectedEventError extends Error {
  override readonly name = 'RejectedEventError';
}

/**
 * The event as it was published, not checked further: whoever may write a topic may write anything.
 * @throws RejectedEventError when it is not a JSON object, or larger than MAX_EVENT_BYTES
 */
export function parseEvent(text: string): CloudEvent {
  if (Buffer.byteLength(text) > MAX_EVENT_BYTES) throw new RejectedEventError('the event is too large');
  let event: unknown;
  try {
    event = parseJson(text);
  } catch {
    throw new RejectedEventError('the event is not JSON');
  }
  if (typeof event !== 'object' || event === null || Array.isArray(event))
    throw new RejectedEventError('the event is not a JSON object');
  return event as CloudEvent;
}

export interface Subscription {
  /** Stops once the running handler has finished and its event is marked as handled. */
  stop(): Promise<void>;
}

export type EventHandler = (event: CloudEvent) => Promise<void>;

export interface SubscribeOptions {
  /** An event whose handler fails this often becomes a dead letter; one that it rejects does so at once. */
  maxAttempts: number;
  retryDelayMs: number;
  /**
   * Handles several events that were published after each other, all or none; they may be of several organizations.
   * When it rejects, or an event is malformed, the handler gets them one by one. A single event goes to the handler.
   */
  handleTogether?: (events: readonly CloudEvent[]) => Promise<void>;
}

export interface Backlog {
  events: number;
  deadLetters: number;
}
export const MOST_DEAD_LETTERS = 10_000;

export interface EventBus {
  /**
   * Resolves when the events are durable. An event that is published again may be stored twice.
   * @throws EventsTooLargeError
   */
  publish(topic: Topic, events: readonly EventText[]): Promise<void>;
  /**
   * Each event goes to one member of the group and is marked as handled (its offset is committed) after the handler.
   */
  subscribe(topic: Topic, group: string, handler: EventHandler, options: SubscribeOptions): Promise<Subscription>;
  /**
   * Passes the group's dead letters to the handler again, oldest first, and removes those that it handles. One that the
   * handler rejects (RejectedEventError) stays a dead letter. Stops at the first other error of the handler and rejects
   * with it; that event and the rest stay dead letters. One caller at a time. Resolves to the number of events handled.
   */
  replay(topic: Topic, group: string, handler: EventHandler): Promise<number>;
  /**
   * Removes events that are past the retention of their topic and that every group has handled, and dead letters past
   * theirs. Resolves to their number. Only for an engine that does not do so by itself.
   */
  removeExpired?(nowMs: number, signal: AbortSignal): Promise<number>;
  /**
   * How many events the group has not handled yet, and how many dead letters it has, of which at most 10,000 are
   * counted. On Kafka all groups of a topic share its dead letters, and each counts those that it has not replayed.
   * @throws ServiceError UNAVAILABLE
   */
  backlog(topic: Topic, group: string): Promise<Backlog>;
  /** Resolves when the engine answers. @throws ServiceError UNAVAILABLE */
  check(): Promise<void>;
  close(): Promise<void>;
}
