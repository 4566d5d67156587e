import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MongoClient, type Document } from 'mongodb';
import { kafka, kafkaFolder } from './kafka.ts';
import { mongodb, secantusFolder } from './mongodb.ts';
import { pause } from './pause.ts';
import { freePort } from './ports.ts';
import { ENGINES_FOLDER, type Recipe } from './server-spec.ts';
import { redis } from './redis.ts';
import { answering, launch } from './running.ts';

export interface ServerOptions {
  /** After the recipe's own arguments, of which they override the same one (Redis, MongoDB). */
  args?: readonly string[];
}
export interface MongoOptions extends ServerOptions {
  /** Makes these users (`createUser` on admin, e.g. `{ createUser: 'app', pwd: 'x', roles: [...] }`), then asks for authentication. `url` names no user. */
  users?: readonly Document[];
}
export interface RedisOptions extends ServerOptions {
  /** Every fdatasync and fsync takes this much longer, by strace (needs the right to trace). */
  slowSyncMs?: number;
}

/** A server of one test: real, on a port and a data folder of its own; it ends with this process at the latest. */
export interface PrivateServer<O extends ServerOptions = ServerOptions> {
  /** What MONGODB_URL, REDIS_URL or KAFKA_BROKERS takes; the same after a restart. */
  readonly url: string;
  readonly port: number;
  /** Another one after a restart. */
  readonly pid: number;
  /** Its output is in `log` there. */
  readonly folder: string;
  /** Resolves when it stands still: connections stay open, nothing answers. */
  pause(): Promise<void>;
  resume(): void;
  /** SIGKILL; the data stay. Resolves when it is gone. */
  kill(): Promise<void>;
  /** On its data and port, with `changes` to its options; kills it first when it runs. Resolves when it answers. */
  restart(changes?: Partial<O>): Promise<void>;
  /** Kills it and removes its data. */
  stop(): Promise<void>;
}

/** @throws Error when `npm run engines -- up` has not installed it */
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
    under: slowSyncMs > 0 ? slowSync(slowSyncMs) : [],
    after: args,
  }));

/** `args` are lines of server.properties by the tool's `--override`. */
export const startKafka = (given: ServerOptions = {}): Promise<PrivateServer> =>
  startPrivate(kafka, given, ({ args = [] }) => ({ after: args.flatMap((line) => ['--override', line]) }));

/** Traced from a grandchild, so that the server's pid is the child's. */
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
/** A test that is killed leaves no server behind. */
const DIE_WITH_PARENT = ['setpriv', '--pdeathsig', 'KILL'];

/** @param around what its command stands under, and what comes after it */
async function startPrivate<O extends ServerOptions>(
  recipe: Recipe,
  given: O,
  around: (options: O) => { under?: readonly string[]; after: readonly string[] },
): Promise<PrivateServer<O>> {
  const installed = { mongodb: secantusFolder, redis: (engines: string) => engines, kafka: kafkaFolder }[recipe.key](
    ENGINES_FOLDER,
  );
  if (!existsSync(installed)) throw new Error(`${recipe.name} is not installed: npm run engines -- up does it`);
  const folder = mkdtempSync(join(tmpdir(), `aks-${recipe.key}-`));
  const place = { engines: ENGINES_FOLDER, data: join(folder, 'data'), port: await freePort() };
  mkdirSync(place.data);
  let options = given;

  const begin = async () => {
    await recipe.prepare(place);
    const { under = [], after } = around(options);
    const command = [...recipe.command(place), ...after];
    const log = join(folder, 'log');
    const child = launch([...DIE_WITH_PARENT, ...under, ...command], { log, cwd: place.data, detached: false });
    await answering(recipe, { pid: child.pid, command }, place.port, log);
    return child;
  };
  let child = await begin();

  const kill = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  return {
    url: recipe.url(place.port),
    port: place.port,
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
      child = await begin();
    },
    async stop() {
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
