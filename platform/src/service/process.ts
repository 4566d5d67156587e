import { join } from 'node:path';
import { systemClock, type Clock } from '../core/clock.ts';
import {
  choice,
  ConfigError,
  describeConfig,
  integer,
  path,
  readConfig,
  type ConfigOf,
  type Declaration,
  type Env,
} from '../core/config.ts';
import { newId } from '../core/ids.ts';
import { keyFileOf, keyFolderOf, peersFileOf } from '../rpc/keys.ts';
import { makeLog, type Log } from '../core/log.ts';
import { whenParentEnds } from './parent.ts';
import { StartError } from '../core/start-error.ts';

const REPOSITORY = join(import.meta.dirname, '../../..');

/** What every process of the product can be told, beside its own settings. */
export const commonConfig = (name: string) => ({
  DATA_DIR: path({
    default: join(REPOSITORY, 'data'),
    description: 'Folder of the embedded engines, one file per service.',
  }),
  KEY_FILE: path({
    default: '',
    description: `This process's own Ed25519 private key (PKCS #8 PEM); empty: keys/${name}.key in DATA_DIR.`,
  }),
  PEERS_FILE: path({
    default: '',
    description:
      'Public keys of the processes that may call (JSON: name to at most two PEM keys); empty: keys/peers.json in DATA_DIR.',
  }),
  LOG_LEVEL: choice({
    default: 'info',
    values: ['silent', 'error', 'warn', 'info', 'debug'],
    description: 'Least severe log line written to standard error.',
  }),
  DRAIN_MS: integer({
    default: 10_000,
    min: 0,
    max: 600_000,
    description: 'Time that running work has to end when the process stops.',
  }),
});
export type CommonConfig = ConfigOf<ReturnType<typeof commonConfig>>;

/** What a process tells the one that started it with a channel. `ready` is host:port. */
export type Told = { ready: string; stopsWithinMs: number } | { faults: string[] };

export interface Running {
  /** Where it listens: host:port. */
  address: string;
  stop(): Promise<void>;
}
export interface ProcessStart<C> {
  config: C;
  log: Log;
  clock: Clock;
  /** Unique per process: owner of leases. */
  instanceId: string;
}

export interface ProcessProgram<D extends Declaration> {
  name: string;
  declaration: D;
  start(start: ProcessStart<ConfigOf<D>>): Promise<Running>;
}

/** Beyond DRAIN_MS, for what is left to close. */
const CLOSE_MS = 2_000;

/**
 * The life of one process: settings -> start -> ready -> stop. A fault of the settings or the start is one sentence and exit
 * code 1; SIGTERM, SIGINT and the end of the parent drain; a second signal changes nothing, DRAIN_MS bounds it.
 */
export async function runProcess<D extends Declaration & ReturnType<typeof commonConfig>>(
  program: ProcessProgram<D>,
  env: Env,
  args: readonly string[],
): Promise<void> {
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(`${program.name}: settings from the environment\n${describeConfig(program.declaration)}\n`);
    return;
  }
  try {
    if (args.length > 0) throw new StartError(`Unknown argument ${args[0]}; --help lists what can be set`);
    await live(program, env);
  } catch (error) {
    await tellFault(program.name, error);
    process.exit(1);
  }
}

async function live<D extends Declaration & ReturnType<typeof commonConfig>>(
  { name, declaration, start }: ProcessProgram<D>,
  env: Env,
): Promise<void> {
  // what a process writes is its owner's alone
  process.umask(0o077);
  const config = withKeyFiles(name, readConfig(declaration, env));
  const log = makeLog(name, config.LOG_LEVEL as string);
  const stopsWithinMs = (config.DRAIN_MS as number) + CLOSE_MS;
  const started = Promise.resolve().then(() =>
    start({ config, log, clock: systemClock, instanceId: `${name}-${newId()}` }),
  );
  let stopping: Promise<void> | undefined;
  const stop = (cause: string): void => {
    log.debug({ cause }, 'stopping');
    // a hung drain must not outlive its bound
    setTimeout(() => process.exit(1), stopsWithinMs).unref();
    stopping ??= started
      .then(
        (running) => running.stop(),
        () => undefined,
      )
      .then(
        () => process.exit(0),
        (error: unknown) => {
          log.error({ error }, 'stop failed');
          process.exit(1);
        },
      );
  };
  process.on('SIGTERM', () => stop('SIGTERM'));
  process.on('SIGINT', () => stop('SIGINT'));
  if (process.connected) process.on('disconnect', () => stop('the parent is gone'));
  // it may have gone before this line was reached
  else if (process.send) stop('the parent is gone');
  else if (env.npm_lifecycle_event) whenParentEnds(() => stop('npm is gone'));
  const { address } = await started;
  log.info({ address }, 'ready');
  await tellParent({ ready: address, stopsWithinMs });
}

function withKeyFiles<C extends CommonConfig>(name: string, config: C): C {
  const folder = keyFolderOf(config.DATA_DIR);
  return {
    ...config,
    KEY_FILE: config.KEY_FILE || keyFileOf(folder, name),
    PEERS_FILE: config.PEERS_FILE || peersFileOf(folder),
  };
}

/** A sentence for people goes to the launcher, which says once what several processes say; without one, to standard error. */
async function tellFault(name: string, error: unknown): Promise<void> {
  const forPeople = error instanceof StartError || error instanceof ConfigError;
  const faults = forPeople ? error.message.split('\n') : [error instanceof Error ? String(error.stack) : String(error)];
  if (forPeople && process.connected) await tellParent({ faults });
  else process.stderr.write(faults.map((fault) => `${name}: ${fault}\n`).join(''));
}

/** Resolves also when the parent has gone meanwhile: its end is heard of by itself. */
const tellParent = (told: Told): Promise<unknown> =>
  new Promise((resolve) =>
    process.connected ? process.send?.(told, undefined, undefined, resolve) : resolve(undefined),
  );
