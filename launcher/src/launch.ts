import { join } from 'node:path';
import { DAY_MS } from 'platform/core/clock.ts';
import { readConfig, type Env } from 'platform/core/config.ts';
import { keyFolderOf } from 'platform/rpc/keys.ts';
import { whenParentEnds } from 'platform/service/parent.ts';
import { commonConfig, tlsSettings } from 'platform/service/process.ts';
import { StartError } from 'platform/core/start-error.ts';
import { lockFile } from 'platform/store/sqlite/file-lock.ts';
import { superviseChild, type ChildSpec, type ProcessEndedError, type SupervisedChild } from './child.ts';
import { addressesOf, reachable } from './environment.ts';
import { heapConfig, heapFlags } from './heap.ts';
import { helpOf } from './help.ts';
import { misspelledSettings } from './misspelled.ts';
import { isSeeded, markSeeded } from './seed-marker.ts';
import { startSetUp, type SetUp } from './set-up-process.ts';
import { faultsOf, readyMessage, replacedKeysMessage, STOPPED } from './messages.ts';

/** In the order in which they stop: a process stops before the processes that it calls. */
const CHILDREN: readonly ChildSpec[] = [
  { name: 'gateway', folder: 'gateway' },
  { name: 'agents', folder: 'services/agents' },
  { name: 'memory', folder: 'services/memory' },
  { name: 'credits', folder: 'services/credits' },
  { name: 'auth', folder: 'services/auth' },
];

const uptime = (): string => `${process.uptime().toFixed(1)} s`;
const print = (line: string): void => void process.stdout.write(`${line}\n`);

let children: readonly SupervisedChild[] = [];
let setUp: SetUp | undefined;
let stopping: Promise<never> | undefined;

/** Drains the processes that have been started, one after the other, then exits. A second call waits for the first. */
function stop(exitCode: number): Promise<never> {
  stopping ??= (async () => {
    await setUp?.end();
    for (const child of children) await child.stop();
    if (exitCode === 0) print(STOPPED);
    process.exit(exitCode);
  })();
  return stopping;
}

async function start(given: Env, args: readonly string[]): Promise<void> {
  if (args.includes('--help') || args.includes('-h')) return print(await helpOf(CHILDREN, given));
  if (args.length > 0) throw new StartError(`Unknown argument ${args[0]}; npm start -- --help lists what can be set`);

  process.umask(0o077);
  const { DATA_DIR, ...heap } = readConfig({ DATA_DIR: commonConfig('launcher').DATA_DIR, ...heapConfig }, given);
  const addresses = addressesOf(given);
  lockFile(join(DATA_DIR, 'launcher'), `The data folder ${DATA_DIR} is in use by another start`);
  const keyFolder = keyFolderOf(DATA_DIR);
  setUp = startSetUp(given, print);
  const removed = await setUp.createKeys(keyFolder);
  if (stopping) return;
  if (removed.length > 0) print(replacedKeysMessage(removed));
  const isFirst = !isSeeded(DATA_DIR);
  if (!isFirst) void setUp.end();
  setInterval(() => void renewKeys(given, keyFolder), DAY_MS).unref();

  // whoever presses Ctrl-C waits: a run that takes longer is interrupted
  const issuer = given.PUBLIC_URL ? { JWT_ISSUER: given.PUBLIC_URL } : {};
  const env = { LOG_LEVEL: 'warn', DRAIN_MS: '5000', ...issuer, ...given, ...addresses, DATA_DIR };
  const settings = new Set(Object.keys(heapConfig));
  const asked = (names: readonly string[]): void => names.forEach((name) => settings.add(name));
  children = CHILDREN.map((spec) =>
    superviseChild(spec, { ...env, ...tlsSettings(keyFolder, spec.name) }, print, heapFlags(heap, spec.name), asked),
  );
  const gatewayAddress = await allReady().finally(() => misspelledSettings(settings, given).forEach(print));
  if (stopping) return;

  const seeded = isFirst ? await setUp.seed({ keyFolder, addresses, shared: Boolean(given.MONGODB_URL) }) : undefined;
  await setUp.end();
  if (stopping) return;
  const gateway = reachable(gatewayAddress);
  const { GATEWAY_LISTEN, GATEWAY_TLS_CERT_FILE } = given;
  // by these "admin doctor" finds the gateway
  const gatewaySettings = {
    ...(GATEWAY_LISTEN && { GATEWAY_ADDRESS: gateway }),
    ...(GATEWAY_TLS_CERT_FILE && { GATEWAY_TLS_CERT_FILE }),
  };
  print(
    readyMessage({
      baseUrl: `${GATEWAY_TLS_CERT_FILE ? 'https' : 'http'}://${gateway}`,
      uptime: uptime(),
      seeded,
      settings: { ...(given.DATA_DIR && { DATA_DIR }), ...addresses, ...gatewaySettings },
    }),
  );
  // only now that the token was shown: if this process dies before, the next start shows a new token
  if (seeded) markSeeded(DATA_DIR);
}

/** Renews the certificates that end soon; running processes read the new ones. */
async function renewKeys(env: Env, keyFolder: string): Promise<void> {
  try {
    setUp = startSetUp(env, print);
    await setUp.createKeys(keyFolder);
  } catch (error) {
    if (!stopping) print(`The certificates could not be renewed: ${(error as Error).message}`);
  } finally {
    await setUp?.end();
  }
}

/**
 * Waits until all processes are ready or have ended.
 * @returns host:port of the gateway
 * @throws AggregateError of all ProcessEndedErrors, so that all faults are reported at once
 */
async function allReady(): Promise<string> {
  const outcomes = await Promise.allSettled(
    children.map(async ({ ready }, i) => {
      const address = await ready;
      print(`  ${(CHILDREN[i] as ChildSpec).name.padEnd(8)} ${address.padEnd(22)} ${uptime()}`);
      return address;
    }),
  );
  const ended = outcomes
    .filter((outcome) => outcome.status === 'rejected')
    .map(({ reason }) => reason as ProcessEndedError);
  if (ended.length > 0) throw new AggregateError(ended);
  return (outcomes[0] as PromiseFulfilledResult<string>).value;
}

/** `npm start`: runs until a signal, then exits with code 0; exits with code 1 if the start fails. */
export function launch(env: Env, args: readonly string[]): void {
  // keeps running when the reader of its output has gone
  process.stdout.on('error', () => undefined);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void stop(0));
  if (env.npm_lifecycle_event) whenParentEnds(() => void stop(0));
  start(env, args).catch((error: unknown) => {
    if (stopping) return;
    for (const line of faultsOf(error)) process.stderr.write(`${line}\n`);
    void stop(1);
  });
}
