import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MongoClient, type Document } from 'mongodb';
import { kafka, kafkaFolder } from './kafka.ts';
import { mongodb, secantusFolder } from './mongodb.ts';
import { pause } from './pause.ts';
import { freePort } from './ports.ts';
import { ENGINES_FOLDER, type ServerSpec } from './server-spec.ts';
import { redis } from './redis.ts';
import { untilAnswering, launch } from './running.ts';

export interface ServerOptions {
  /** Further arguments. For Redis and MongoDB they override the same arguments of the spec. */
  args?: readonly string[];
}
export interface MongoOptions extends ServerOptions {
  /**
   * Creates these users and then requires authentication. Each is a command on the database admin, for example
   * `{ createUser: 'app', pwd: 'x', roles: [...] }`. `url` has no credentials.
   */
  users?: readonly Document[];
}
export interface RedisOptions extends ServerOptions {
  /** Delays every fdatasync and fsync by this time, with strace, which needs the permission to trace. */
  slowSyncMs?: number;
}

/** A real server for one test with its own port and data folder. It ends when this process ends, if not before. */
export interface PrivateServer<O extends ServerOptions = ServerOptions> {
  /** Value for MONGODB_URL, REDIS_URL or KAFKA_BROKERS; does not change on a restart. */
  readonly url: string;
  readonly port: number;
  /** Changes on a restart. */
  readonly pid: number;
  /** The file `log` in this folder has its output. */
  readonly folder: string;
  /** Resolves when all threads have stopped: connections stay open, but nothing answers. */
  pause(): Promise<void>;
  resume(): void;
  /** Sends SIGKILL and resolves when the process has ended; the data is kept. */
  kill(): Promise<void>;
  /** Kills it if it runs, starts it on the same data and port with changed options, and resolves when it answers. */
  restart(changes?: Partial<O>): Promise<void>;
  /** Kills it and removes its data. */
  stop(): Promise<void>;
}

/** @throws Error if `npm run engines -- up` has not installed it */
export async function startMongo({ users = [], ...options }: MongoOptions = {}): Promise<PrivateServer> {
  const server = await startPrivate(mongodb, options, ({ args = [] }) => ({ after: args }));
  if (users.length === 0) return server;
  const client = new MongoClient(server.url);
  for (const user of users) await client.db('admin').command(user);
  await client.close();
  await server.restart({ args: [...(options.args ?? []), '--auth'] });
  return server;
}

export const startRedis = (given: RedisOptions = {}): Promise<PrivateServer<RedisOptions>> =>
  startPrivate(redis, given, ({ args = [], slowSyncMs = 0 }) => ({
    before: slowSyncMs > 0 ? slowSync(slowSyncMs) : [],
    after: args,
  }));

/** `args` are lines of server.properties, which are passed with `--override`. */
export const startKafka = (given: ServerOptions = {}): Promise<PrivateServer> =>
  startPrivate(kafka, given, ({ args = [] }) => ({ after: args.flatMap((line) => ['--override', line]) }));

/** With -D the tracer runs as a grandchild, so that the pid of the child is the server's. */
const slowSync = (ms: number): string[] => [
  'strace',
  '-D',
  '-f',
  '-qq',
  '-o',
  '/dev/null',
  '-e',
  'trace=fdatasync,fsync',
  '-e',
  `inject=fdatasync,fsync:delay_enter=${ms * 1_000}`,
];
/** Kills the server when the test's process ends, even by SIGKILL. */
const DIE_WITH_PARENT = ['setpriv', '--pdeathsig', 'KILL'];

/** @param wrapping what to put before and after the command of the spec */
async function startPrivate<O extends ServerOptions>(
  spec: ServerSpec,
  given: O,
  wrapping: (options: O) => { before?: readonly string[]; after: readonly string[] },
): Promise<PrivateServer<O>> {
  const installed = { mongodb: secantusFolder, redis: (engines: string) => engines, kafka: kafkaFolder }[spec.key](
    ENGINES_FOLDER,
  );
  if (!existsSync(installed)) throw new Error(`${spec.name} is not installed: npm run engines -- up installs it`);
  const folder = mkdtempSync(join(tmpdir(), `aks-${spec.key}-`));
  const location = { engines: ENGINES_FOLDER, data: join(folder, 'data'), port: await freePort() };
  mkdirSync(location.data);
  let options = given;

  const start = async () => {
    await spec.prepare(location);
    const { before = [], after } = wrapping(options);
    const command = [...spec.command(location), ...after];
    const log = join(folder, 'log');
    const child = launch([...DIE_WITH_PARENT, ...before, ...command], { log, cwd: location.data, detached: false });
    await untilAnswering(spec, { pid: child.pid, command }, location.port, log);
    return child;
  };
  let child = await start();

  const kill = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  return {
    url: spec.url(location.port),
    port: location.port,
    folder,
    get pid() {
      return child.pid;
    },
    pause: () => pause(child.pid),
    resume: () => void child.kill('SIGCONT'),
    kill,
    async restart(changes = {}) {
      await kill();
      options = { ...options, ...changes };
      child = await start();
    },
    async stop() {
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
