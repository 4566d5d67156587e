import {
  MongoClient,
  MongoServerError,
  MongoServerSelectionError,
  type Document,
  type TopologyDescription,
} from 'mongodb';
import { StartError } from '../../core/start-error.ts';
import { withMongoTimeout, TimedOutError } from './faults.ts';

export interface MongoSettings {
  /** mongodb:// or mongodb+srv://, with credentials if the server asks for them. */
  url: string;
  database: string;
  poolMax: number;
  /** For one operation, its repeats included. */
  timeoutMs: number;
}

/** What the sentences of a failed start name. */
interface Target {
  /** host:port of every host in the URL. */
  where: string;
  database: string;
  /** What the driver knows of the servers. */
  topology: TopologyDescription | undefined;
}

const START_MS = 5_000;

/** Our options win over those in the URL. */
function clientFor({ url, poolMax, timeoutMs }: Omit<MongoSettings, 'database'>): MongoClient {
  try {
    return new MongoClient(url, {
      appName: 'agent-memory',
      writeConcern: { w: 'majority', journal: true },
      readConcern: { level: 'majority' },
      readPreference: 'primary',
      retryWrites: true,
      retryReads: true,
      ignoreUndefined: false,
      monitorCommands: true,
      maxPoolSize: poolMax,
      // In driver 7.8 `timeoutMS` does nothing: each part of an operation has its own limit, the whole is bounded by `withMongoTimeout` (ADR 11).
      serverSelectionTimeoutMS: timeoutMs,
      connectTimeoutMS: timeoutMs,
      waitQueueTimeoutMS: timeoutMs,
      socketTimeoutMS: timeoutMs,
    });
  } catch (error) {
    // Messages on options name no credentials; others may quote the URL.
    const why = /option/i.test((error as Error).message)
      ? (error as Error).message
      : 'it is no mongodb://host:port/?replicaSet=name';
    throw new StartError(`MONGODB_URL cannot be used: ${why}`);
  }
}

/**
 * A client that reached a server which can carry the store.
 * @throws StartError one sentence, without credentials, within 5 seconds
 */
export async function connectMongo(settings: MongoSettings): Promise<{ client: MongoClient; target: Target }> {
  const client = clientFor(settings);
  const where = client.options.hosts.map(String).join(',') || client.options.srvHost!;
  const target: Target = { where, database: settings.database, topology: undefined };
  client.on('topologyDescriptionChanged', ({ newDescription }) => (target.topology = newDescription));
  try {
    await checked(target, async () => {
      await client.connect();
      checkServer(where, await client.db('admin').command({ hello: 1 }));
    });
    return { client, target };
  } catch (error) {
    await client.close();
    throw error;
  }
}

/** Runs a part of the start; what goes wrong is one sentence. @param limitMs for a part that may take longer @throws StartError */
export async function checked<T>(target: Target, work: () => Promise<T>, limitMs = START_MS): Promise<T> {
  try {
    return await withMongoTimeout(work(), limitMs);
  } catch (error) {
    throw error instanceof StartError ? error : new StartError(sentence(target, error), { cause: error });
  }
}

function checkServer(where: string, hello: Document): void {
  if (hello.setName === undefined && hello.msg !== 'isdbgrid') {
    throw new StartError(
      `MongoDB at ${where} is a standalone server, and transactions need a replica set or a sharded cluster (one server is enough: start it with --replSet)`,
    );
  }
}

function sentence(target: Target, error: unknown): string {
  const { where, database } = target;
  if (error instanceof MongoServerSelectionError || error instanceof TimedOutError) return unreached(target);
  const code = error instanceof MongoServerError ? error.code : undefined;
  if (code === 18) return `MongoDB at ${where} refuses the user name or password in MONGODB_URL`;
  if (code === 13) return `MongoDB at ${where} does not allow what the service needs: readWrite on ${database}`;
  return `MongoDB at ${where} cannot be used: ${(error as Error).message}`;
}

function unreached({ where, topology }: Target): string {
  const servers = [...(topology?.servers.values() ?? [])];
  // The driver forgets a server that is not of the set.
  if (servers.length === 0 && topology?.setName)
    return `MongoDB at ${where} is no member of the replica set ${topology.setName} that MONGODB_URL names`;
  const fault = servers.flatMap(({ error }) => error ?? [])[0];
  if (fault === undefined) return `MongoDB at ${where} does not answer`;
  // The driver takes nothing older than what the store needs: 4.4 makes collections inside transactions.
  const old = /maximum wire version (\d+).*(at least .*)/.exec(fault.message);
  return old === null
    ? `MongoDB at ${where} cannot be reached: ${fault.message}`
    : `MongoDB at ${where} is too old: it speaks wire version ${old[1]}, needed is ${old[2]}`;
}
