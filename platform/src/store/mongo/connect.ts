import {
  MongoClient,
  MongoServerError,
  MongoServerSelectionError,
  type Document,
  type TopologyDescription,
} from 'mongodb';
import { StartError } from '../../core/start-error.ts';
import { TimedOutError, withMongoTimeout } from './errors.ts';

export interface MongoSettings {
  /** mongodb:// or mongodb+srv://, with credentials if the server asks for them. */
  url: string;
  database: string;
  poolMax: number;
  /** For one operation, including its retries. */
  timeoutMs: number;
}

/** What the messages of a failed start name. */
interface Target {
  /** host:port of every host in the URL. */
  where: string;
  database: string;
  /** What the driver knows about the servers; undefined until it reported anything. */
  topology: TopologyDescription | undefined;
}

const START_MS = 5_000;

/** These options override those in the URL. */
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
      // In driver 7.8 `timeoutMS` has no effect. These limit the parts of an operation; `withMongoTimeout` limits the
      // whole (ADR 11).
      serverSelectionTimeoutMS: timeoutMs,
      connectTimeoutMS: timeoutMs,
      waitQueueTimeoutMS: timeoutMs,
      socketTimeoutMS: timeoutMs,
    });
  } catch (error) {
    // A message about an option contains no credentials; others may quote the URL.
    const why = /option/i.test((error as Error).message)
      ? (error as Error).message
      : 'it is no mongodb://host:port/?replicaSet=name';
    throw new StartError(`MONGODB_URL cannot be used: ${why}`);
  }
}

/**
 * Connects, and checks that the server can be used for the store.
 * @throws StartError with one sentence, without credentials, within 5 seconds
 */
export async function connectMongo(settings: MongoSettings): Promise<{ client: MongoClient; target: Target }> {
  const client = clientFor(settings);
  const where = client.options.hosts.map(String).join(',') || client.options.srvHost!;
  const target: Target = { where, database: settings.database, topology: undefined };
  client.on('topologyDescriptionChanged', ({ newDescription }) => (target.topology = newDescription));
  try {
    await withStartErrors(target, async () => {
      await client.connect();
      checkServer(where, await client.db('admin').command({ hello: 1 }));
    });
    return { client, target };
  } catch (error) {
    await client.close();
    throw error;
  }
}

/**
 * Runs one step of the start.
 * @throws StartError with one sentence for any error, and when the step takes longer than `limitMs`
 */
export async function withStartErrors<T>(target: Target, work: () => Promise<T>, limitMs = START_MS): Promise<T> {
  try {
    return await withMongoTimeout(work(), limitMs);
  } catch (error) {
    throw error instanceof StartError ? error : new StartError(messageFor(target, error), { cause: error });
  }
}

function checkServer(where: string, hello: Document): void {
  if (hello.setName === undefined && hello.msg !== 'isdbgrid') {
    throw new StartError(
      `MongoDB at ${where} is a standalone server, and transactions need a replica set or a sharded cluster ` +
        '(one server is enough: start it with --replSet)',
    );
  }
}

function messageFor(target: Target, error: unknown): string {
  const { where, database } = target;
  if (error instanceof MongoServerSelectionError || error instanceof TimedOutError) return unreachableMessage(target);
  const code = error instanceof MongoServerError ? error.code : undefined;
  if (code === 18) return `MongoDB at ${where} rejects the user name or password in MONGODB_URL`;
  if (code === 13) return `MongoDB at ${where} does not allow what the service needs: readWrite on ${database}`;
  return `MongoDB at ${where} cannot be used: ${(error as Error).message}`;
}

function unreachableMessage({ where, topology }: Target): string {
  const servers = [...(topology?.servers.values() ?? [])];
  // The driver drops a server that is not a member of the replica set.
  if (servers.length === 0 && topology?.setName)
    return `MongoDB at ${where} is no member of the replica set ${topology.setName} that MONGODB_URL names`;
  const failure = servers.flatMap(({ error }) => error ?? [])[0];
  if (failure === undefined) return `MongoDB at ${where} does not answer`;
  // The driver rejects servers before 4.4, and the store needs 4.4: it makes collections inside transactions.
  const old = /maximum wire version (\d+).*(at least .*)/.exec(failure.message);
  return old === null
    ? `MongoDB at ${where} cannot be reached: ${failure.message}`
    : `MongoDB at ${where} is too old: it speaks wire version ${old[1]}, needed is ${old[2]}`;
}
