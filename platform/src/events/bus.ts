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

export const TOPICS = ['agent.execution.v1', 'audit.v1', 'credits.ledger.v1', 'memory.change.v1'] as const;
export type Topic = (typeof TOPICS)[number];

export interface Subscription {
  /** Stops after the handler that is running. */
  stop(): Promise<void>;
}

export interface SubscribeOptions {
  /** A handler that fails this often on one event sends it to the dead letters. */
  maxAttempts: number;
  retryDelayMs: number;
}

export interface EventBus {
  /** Resolves when the events are durable. A repeat of an id may be stored again. */
  publish(topic: Topic, events: readonly CloudEvent[]): Promise<void>;
  /** Each event goes to one member of the group; its offset is committed after the handler resolved. */
  subscribe(topic: Topic, group: string, handler: (event: CloudEvent) => Promise<void>, options: SubscribeOptions): Promise<Subscription>;
  close(): Promise<void>;
}
