import { once } from 'node:events';
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
import { requireOwnFolder } from '../core/folder.ts';
import { newId } from '../core/ids.ts';
import type { IdentityFiles } from '../rpc/identity.ts';
import { identityFilesOf, keyFolderOf } from '../rpc/keys.ts';
import { makeLog, type Log } from '../core/log.ts';
import { whenParentEnds } from './parent.ts';
import { RELEASE } from '../core/release.ts';
import { StartError } from '../core/start-error.ts';
import { startTraces } from '../telemetry/start-traces.ts';
import { traceFacts } from '../telemetry/traces.ts';
import { tracesUrl, type tracesConfig } from '../telemetry/traces-config.ts';

const REPOSITORY = join(import.meta.dirname, '../../..');

/** The settings that every process of the product has. */
export const commonConfig = (name: string) => ({
  DATA_DIR: path({
    default: join(REPOSITORY, 'data'),
    description: 'Folder of the SQLite files, one per service, and of the certificates.',
  }),
  TLS_CERT_FILE: path({
    default: '',
    description: `This process's own certificate (PEM), whose only name is ${name}; empty: keys/${name}.pem in DATA_DIR.`,
  }),
  TLS_KEY_FILE: path({
    default: '',
    description: `The private key of the certificate (PKCS #8 PEM); empty: keys/${name}.pem in DATA_DIR.`,
  }),
  TLS_CA_FILE: path({
    default: '',
    description: 'Certificates of the accepted authorities (PEM); empty: keys/ca.crt in DATA_DIR.',
  }),
  REVOKED_FILE: path({
    default: '',
    description: 'Operators that are refused, one name a line; empty: keys/revoked.txt in DATA_DIR.',
  }),
  LOG_LEVEL: choice({
    default: 'info',
    values: ['silent', 'error', 'warn', 'info', 'debug'],
    description: 'Lowest severity of the log lines written to standard error.',
  }),
  DRAIN_MS: integer({
    default: 10_000,
    min: 0,
    max: 600_000,
    description: 'How long running work may take to end when the process stops; what takes longer is cut off.',
  }),
});
export type CommonConfig = ConfigOf<ReturnType<typeof commonConfig>>;
type ProcessConfig = ReturnType<typeof commonConfig> & typeof tracesConfig;

/**
 * Message of a process to the one that started it with an IPC channel. `asksFor`: the names of its settings, to which
 * the answer is a SettingsMessage; `ready`: the host:port that it listens on; `faults`: sentences that say why it could
 * not start.
 */
export type ChildMessage = { asksFor: string[] } | { ready: string; stopsWithinMs: number } | { faults: string[] };
export type SettingsMessage = { settings: Record<string, string> };

/** In the environment of a process that must ask its parent for its settings. */
export const SETTINGS_BY_MESSAGE = 'SETTINGS_BY_MESSAGE';

export interface Running {
  /** Where it listens: host:port. */
  address: string;
  stop(): Promise<void>;
}
export interface ProcessStart<C> {
  config: C;
  log: Log;
  clock: Clock;
  /** Unique per process; the owner of its leases. */
  instanceId: string;
}

export interface ProcessProgram<D extends Declaration> {
  name: string;
  declaration: D;
  start(start: ProcessStart<ConfigOf<D>>): Promise<Running>;
}

/** Time after DRAIN_MS to close stores and connections. */
const CLOSE_MS = 2_000;

/**
 * Runs one process: reads its settings, starts it, reports that it is ready, and stops it when asked. If the settings
 * are wrong or the start fails, it reports each fault in one sentence and exits with code 1. SIGTERM, SIGINT and the
 * end of the parent drain the process; a second signal changes nothing, since DRAIN_MS limits the drain.
 */
export async function runProcess<D extends Declaration & ProcessConfig>(
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
    await startAndReport(program, env);
  } catch (error) {
    await reportFault(program.name, error);
    process.exit(1);
  }
}

async function startAndReport<D extends Declaration & ProcessConfig>(
  { name, declaration, start }: ProcessProgram<D>,
  env: Env,
): Promise<void> {
  // Only the owner of the process may read the files that it writes.
  process.umask(0o077);
  const settings = env[SETTINGS_BY_MESSAGE] ? { ...env, ...(await askForSettings(Object.keys(declaration))) } : env;
  const config = readConfig(declaration, settings);
  requireOwnFolder(config.DATA_DIR as string);
  const isTraced = tracesUrl(config) !== '';
  const log = makeLog(name, config.LOG_LEVEL as string, isTraced ? traceFacts : undefined);
  const instanceId = `${name}-${newId()}`;
  const stopTraces = await startTraces(config, { service: name, instanceId, log });
  const stopsWithinMs = (config.DRAIN_MS as number) + CLOSE_MS;
  const started = Promise.resolve().then(() => start({ config, log, clock: systemClock, instanceId }));
  let stopping: Promise<void> | undefined;
  const stop = (cause: string): void => {
    log.debug({ cause }, 'stopping');
    // The process must end even if the drain hangs.
    setTimeout(() => process.exit(1), stopsWithinMs).unref();
    stopping ??= started
      .then(
        (running) => running.stop(),
        () => undefined,
      )
      .then(stopTraces)
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
  // The parent ended before this line, so there will be no 'disconnect'.
  else if (process.send) stop('the parent is gone');
  else if (env.npm_lifecycle_event) whenParentEnds(() => stop('npm is gone'));
  const { address } = await started;
  log.info({ address, release: RELEASE }, 'ready');
  await sendToParent({ ready: address, stopsWithinMs });
}

/** The files that prove who this process is, and who may call it. */
export function identityFiles(name: string, config: CommonConfig): IdentityFiles {
  const defaults = identityFilesOf(keyFolderOf(config.DATA_DIR), name);
  return {
    certFile: config.TLS_CERT_FILE || defaults.certFile,
    keyFile: config.TLS_KEY_FILE || defaults.keyFile,
    caFile: config.TLS_CA_FILE || defaults.caFile,
    revokedFile: config.REVOKED_FILE || defaults.revokedFile,
  };
}

/** Settings of a process whose certificate is in this folder. */
export function tlsSettings(keyFolder: string, name: string): Record<string, string> {
  const { certFile, keyFile, caFile, revokedFile } = identityFilesOf(keyFolder, name);
  return { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile, TLS_CA_FILE: caFile, REVOKED_FILE: revokedFile };
}

/**
 * Sends sentences for people to the launcher, which prints once what several processes report. Without a launcher, and
 * for a bug, writes to standard error.
 */
async function reportFault(name: string, error: unknown): Promise<void> {
  const forPeople = error instanceof StartError || error instanceof ConfigError;
  const faults = forPeople ? error.message.split('\n') : [error instanceof Error ? String(error.stack) : String(error)];
  if (forPeople && process.connected) await sendToParent({ faults });
  else process.stderr.write(faults.map((fault) => `${name}: ${fault}\n`).join(''));
}

/** Never resolves when the parent ends first, which ends this process. */
async function askForSettings(names: string[]): Promise<Env> {
  const answer = once(process, 'message') as Promise<[SettingsMessage]>;
  await sendToParent({ asksFor: names });
  const [{ settings }] = await answer;
  return settings;
}

/** Resolves also when the parent has ended: the 'disconnect' listener handles that. */
const sendToParent = (message: ChildMessage): Promise<unknown> =>
  new Promise((resolve) =>
    process.connected ? process.send?.(message, undefined, undefined, resolve) : resolve(undefined),
  );
