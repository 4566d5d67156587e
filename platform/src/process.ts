import { join } from 'node:path';
import { systemClock, type Clock } from './clock.ts';
import { choice, ConfigError, describeConfig, integer, readConfig, text, type ConfigOf, type Declaration } from './config.ts';
import { newId } from './ids.ts';
import { keyFileOf, peersFileOf } from './keys.ts';
import { makeLog, type Log } from './log.ts';
import { StartError } from './start-error.ts';

export type Env = Readonly<Record<string, string | undefined>>;

const REPOSITORY = join(import.meta.dirname, '../..');

/** What every process of the product can be told, beside its own settings. */
export const commonConfig = (name: string) => ({
  DATA_DIR: text({ default: join(REPOSITORY, 'data'), description: 'Folder of the embedded engines, one file per service.' }),
  KEY_FILE: text({ default: keyFileOf(join(REPOSITORY, 'data/keys'), name), description: "This process's own Ed25519 private key (PKCS #8 PEM)." }),
  PEERS_FILE: text({ default: peersFileOf(join(REPOSITORY, 'data/keys')), description: 'Public keys of the processes that may call (JSON: name to at most two PEM keys).' }),
  LOG_LEVEL: choice({ default: 'info', values: ['silent', 'error', 'warn', 'info', 'debug'], description: 'Least severe log line written to standard error.' }),
  DRAIN_MS: integer({ default: 10_000, min: 0, max: 600_000, description: 'Time that running work has to end when the process stops.' }),
});
export type CommonConfig = ConfigOf<ReturnType<typeof commonConfig>>;

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

/**
 * The life of one process: settings -> start -> ready -> stop. A fault of the settings or the start is one sentence and exit
 * code 1; SIGTERM, SIGINT and the end of the parent drain; a second signal changes nothing, DRAIN_MS bounds it.
 */
export async function runProcess<D extends Declaration & ReturnType<typeof commonConfig>>({ name, declaration, start }: ProcessProgram<D>, env: Env, args: readonly string[]): Promise<void> {
  if (args.includes('--help')) {
    process.stdout.write(`${name}: settings from the environment\n${describeConfig(declaration)}\n`);
    return;
  }
  const config = readConfigOrExit(name, declaration, env);
  const log = makeLog(name, config.LOG_LEVEL as string);
  const started = Promise.resolve().then(() => start({ config, log, clock: systemClock, instanceId: `${name}-${newId()}` }));
  let stopping: Promise<void> | undefined;
  const stop = (cause: string): void => {
    log.debug({ cause }, 'stopping');
    // a hung drain must not outlive its bound
    setTimeout(() => process.exit(1), (config.DRAIN_MS as number) + 2_000).unref();
    stopping ??= started.then((running) => running.stop(), () => undefined).then(() => process.exit(0), (error: unknown) => { log.error({ error }, 'stop failed'); process.exit(1); });
  };
  process.on('SIGTERM', () => stop('SIGTERM'));
  process.on('SIGINT', () => stop('SIGINT'));
  if (process.connected) process.on('disconnect', () => stop('the parent is gone'));
  // it may have gone before this line was reached
  else if (process.send) stop('the parent is gone');
  try {
    const { address } = await started;
    log.info({ address }, 'ready');
    process.send?.({ ready: address });
  } catch (error) {
    exitWith(name, error);
  }
}

function readConfigOrExit<D extends Declaration>(name: string, declaration: D, env: Env): ConfigOf<D> {
  try {
    return readConfig(declaration, env);
  } catch (error) {
    return exitWith(name, error);
  }
}

function exitWith(name: string, error: unknown): never {
  const forPeople = error instanceof StartError || error instanceof ConfigError;
  process.stderr.write(`${name}: ${forPeople ? error.message : error instanceof Error ? error.stack : String(error)}\n`);
  process.exit(1);
}
