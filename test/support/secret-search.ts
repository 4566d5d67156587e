import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Redis } from 'ioredis';
import { MongoClient } from 'mongodb';
import { unpackEvents, type Block } from 'platform/events/sqlite/blocks.ts';
import { withAdmin } from '../../platform/test/events/kafka-fixture.ts';
import { messagesInKafka } from './kafka-messages.ts';

/** A place of a stopped stack in which no secret may be, and what it holds. */
export type Place = readonly [name: string, bytes: Buffer];

const BEARER = /aks_[0-9A-Za-z]{49}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{20,}/g;
const sent = new Set<string>();

/** Notes a bearer that a test sends, if it has the form of a server token or of a JWT. */
export function noteBearer(bearer: string): void {
  if (bearer.match(BEARER)?.[0] === bearer) sent.add(bearer);
}

/** The files below the folder, but for those in folders of keys, which hold nothing else. */
const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => !/(^|\/)keys(\/|$)/.test(file) && statSync(join(folder, file)).isFile())
    .map((file) => join(folder, file));

/** The master keys, and the private keys without the lines around them. */
export function keysIn(folder: string): string[] {
  const keys = join(folder, 'keys');
  return readdirSync(keys).flatMap((file) => {
    const text = readFileSync(join(keys, file), 'utf8');
    const found = [...text.matchAll(/PRIVATE KEY-----\s([^-]+)-----END/g)].map(([, key]) => key!.replace(/\s/g, ''));
    return file === 'master-key' ? (text.match(/^\S+/gm) ?? []) : found;
  });
}

/** What the processes of a stack have stored, in its folder and on the servers of `env`. They are stopped. */
export async function storedPlaces(folder: string, env: Readonly<Record<string, string>>): Promise<Place[]> {
  const files = filesIn(folder);
  const eventFiles = files.filter((file) => basename(file) === 'events.db');
  return [
    ...files.map((file): Place => [file, readFileSync(file)]),
    ...eventFiles.map((file): Place => [`the events in ${file}`, eventsIn(file)]),
    ...(env['MONGODB_URL'] ? await documentsIn(env['MONGODB_URL'], env['MONGODB_DATABASE']!) : []),
    ...(env['KAFKA_BROKERS'] ? await eventsInKafka(env['KAFKA_BROKERS'], env['KAFKA_TOPIC_PREFIX'] ?? '') : []),
    ...(env['REDIS_URL'] ? [await valuesIn(env['REDIS_URL'], env['REDIS_KEY_PREFIX']!)] : []),
  ];
}

function eventsIn(file: string): Buffer {
  const db = new DatabaseSync(file, { readOnly: true });
  const blocks = db.prepare('SELECT topic, count, events FROM block').all() as unknown as Block[];
  db.close();
  return Buffer.concat(blocks.map((block) => Buffer.from(`${unpackEvents(block).join('\n')}\n`)));
}

async function documentsIn(url: string, prefix: string): Promise<Place[]> {
  const client = new MongoClient(url);
  try {
    const places: Place[] = [];
    for (const service of ['auth', 'agents', 'memory', 'credits'])
      for (const collection of await client.db(`${prefix}_${service}`).collections()) {
        const documents = await collection.find({}).toArray();
        places.push([`${service}.${collection.collectionName}`, Buffer.from(JSON.stringify(documents))]);
      }
    return places;
  } finally {
    await client.close();
  }
}

/** The messages of the topics and of their dead letters, one place for each topic. */
async function eventsInKafka(brokers: string, prefix: string): Promise<Place[]> {
  const addresses = brokers.split(',');
  const existing = await withAdmin(addresses, (admin) => admin.listTopics());
  const messages = await messagesInKafka(
    addresses,
    existing.filter((topic) => topic.startsWith(prefix)),
  );
  return [...Map.groupBy(messages, ({ topic }) => topic)].map(([topic, found]) => [
    `the topic ${topic}`,
    Buffer.concat(found.map(({ value }) => value)),
  ]);
}

async function valuesIn(url: string, prefix: string): Promise<Place> {
  const redis = new Redis(url);
  const read: Record<string, (key: string) => Promise<unknown>> = {
    string: (key) => redis.get(key),
    hash: (key) => redis.hgetall(key),
    list: (key) => redis.lrange(key, 0, -1),
    set: (key) => redis.smembers(key),
    zset: (key) => redis.zrange(key, '0', '-1'),
    stream: (key) => redis.xrange(key, '-', '+'),
  };
  const values: unknown[] = [];
  for await (const keys of redis.scanStream({ match: `${prefix}:*`, count: 1_000 }))
    for (const key of keys as string[]) values.push([key, await read[await redis.type(key)]?.(key)]);
  redis.disconnect();
  return ['Redis', Buffer.from(JSON.stringify(values))];
}

/** Every way in which text may be found again: as it is, and as the bytes that base64 stands for. */
function traces(secret: string): Buffer[] {
  const decoded = Buffer.from(secret, 'base64');
  return [Buffer.from(secret), ...(decoded.length >= 24 ? [decoded] : [])];
}

/** After minutes of a benchmark a place is longer than any string may be. */
export const WINDOW = 64 * 1024 * 1024;
/** Longer than any bearer, so that each is whole in one of the windows. */
const OVERLAP = 16 * 1024;

function bearersIn(bytes: Buffer): Set<string> {
  const found = new Set<string>();
  for (let from = 0; from < bytes.length; from += WINDOW)
    for (const bearer of bytes.toString('latin1', from, from + WINDOW + OVERLAP).match(BEARER) ?? [])
      if (sent.has(bearer)) found.add(bearer);
  return found;
}

/** Says where one of these secrets is, or a bearer that was noted. */
export function foundSecrets(places: readonly Place[], secrets: readonly string[]): string[] {
  const kept = secrets.flatMap((secret) => traces(secret).map((trace) => ({ secret, trace })));
  return places.flatMap(([place, bytes]) => {
    const found = [
      ...bearersIn(bytes),
      ...kept.filter(({ trace }) => bytes.includes(trace)).map(({ secret }) => secret),
    ];
    return found.map((secret) => `${secret.slice(0, 8)}… is in ${place}`);
  });
}

/**
 * Searches what a stopped stack has printed and stored. The token that the first start shows once may be in its output.
 * @throws Error that names each place with a secret
 */
export async function requireNoSecrets(
  folder: string,
  env: Readonly<Record<string, string>>,
  outputs: readonly string[],
): Promise<void> {
  const printed = outputs.map((output): Place => {
    const shown = /shown this once:\s+(aks_\w+)/.exec(output)?.[1];
    return ['the output', Buffer.from(shown === undefined ? output : output.replaceAll(shown, ''))];
  });
  // A test that fails may remove its folder before its stack stops.
  const isThere = existsSync(folder);
  const places = isThere ? await storedPlaces(folder, env) : [];
  const found = foundSecrets([...printed, ...places], isThere ? keysIn(folder) : []);
  if (found.length > 0) throw new Error(`secrets were kept: ${found.join('; ')}`);
}
