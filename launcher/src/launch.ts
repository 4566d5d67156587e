import { systemClock } from 'platform/core/clock.ts';
import { readConfig, type Env } from 'platform/core/config.ts';
import { createKeys, keyFileOf, keyFolderOf, peersFileOf } from 'platform/rpc/keys.ts';
import { openOperator, operatorName } from 'platform/rpc/operator.ts';
import { whenParentEnds } from 'platform/service/parent.ts';
import { commonConfig } from 'platform/service/process.ts';
import { PROCESSES } from 'platform/core/processes.ts';
import { StartError } from 'platform/core/start-error.ts';
import { superviseChild, type Part, type ProcessEndedError, type SupervisedChild } from './child.ts';
import { claimDataFolder } from './data-folder.ts';
import { addressesOf, reachable } from './environment.ts';
import { helpOf } from './help.ts';
import { retryWhileUnavailable } from './retry-while-unavailable.ts';
import { markSeeded, seed } from './seed.ts';
import { farewell, faultsOf, greeting } from './messages.ts';

/** In the order in which they stop: whoever calls goes before whom it calls. */
const PARTS: readonly Part[] = [
  { name: 'gateway', folder: 'gateway' },
  { name: 'agents', folder: 'services/agents' },
  { name: 'memory', folder: 'services/memory' },
  { name: 'credits', folder: 'services/credits' },
  { name: 'auth', folder: 'services/auth' },
];

const seconds = (): string => `${process.uptime().toFixed(1)} s`;
const say = (line: string): void => void process.stdout.write(`${line}\n`);

let children: readonly SupervisedChild[] = [];
let stopping: Promise<never> | undefined;

/** Drains part after part, whatever has started so far; a second call waits for the first. */
function stop(exitCode: number): Promise<never> {
  stopping ??= (async () => {
    for (const child of children) await child.stop();
    if (exitCode === 0) say(farewell);
    process.exit(exitCode);
  })();
  return stopping;
}

async function start(given: Env, args: readonly string[]): Promise<void> {
  if (args.includes('--help') || args.includes('-h')) return say(await helpOf(PARTS, given));
  if (args.length > 0) throw new StartError(`Unknown argument ${args[0]}; npm start -- --help lists what can be set`);

  process.umask(0o077);
  const { DATA_DIR } = readConfig({ DATA_DIR: commonConfig('launcher').DATA_DIR }, given);
  const addresses = addressesOf(given);
  claimDataFolder(DATA_DIR);
  const keyFolder = keyFolderOf(DATA_DIR);
  createKeys(keyFolder, [...Object.keys(PROCESSES), operatorName()]);

  const env = { LOG_LEVEL: 'warn', ...given, ...addresses, DATA_DIR, PEERS_FILE: peersFileOf(keyFolder) };
  children = PARTS.map((part) => superviseChild(part, { ...env, KEY_FILE: keyFileOf(keyFolder, part.name) }, say));
  const gatewayAddress = await allReady();
  if (stopping) return;

  const operator = openOperator({ keyFolder, addresses });
  const tokenIds = new Set<string>();
  const seeded = await retryWhileUnavailable(
    () => seed(operator, DATA_DIR, Boolean(given.MONGODB_URL), systemClock, tokenIds),
    {
      say,
      isStopping: () => stopping !== undefined,
    },
  );
  operator.close();
  if (stopping) return;
  say(
    greeting({
      baseUrl: `http://${reachable(gatewayAddress)}`,
      seconds: seconds(),
      seeded,
      settings: { ...(given.DATA_DIR && { DATA_DIR }), ...addresses },
    }),
  );
  // after its token was shown: a start that dies in between is shown a new one
  if (seeded) markSeeded(DATA_DIR);
}

/** @returns the gateway's host:port. @throws AggregateError of every ProcessEndedError: who starts it hears of all faults at once */
async function allReady(): Promise<string> {
  const outcomes = await Promise.allSettled(
    children.map(async ({ ready }, i) => {
      const address = await ready;
      say(`  ${(PARTS[i] as Part).name.padEnd(8)} ${address.padEnd(22)} ${seconds()}`);
      return address;
    }),
  );
  const ended = outcomes
    .filter((outcome) => outcome.status === 'rejected')
    .map(({ reason }) => reason as ProcessEndedError);
  if (ended.length > 0) throw new AggregateError(ended);
  return (outcomes[0] as PromiseFulfilledResult<string>).value;
}

/** `npm start`: runs until it is told to stop; ends the process with exit code 0, or 1 when it cannot start. */
export function launch(env: Env, args: readonly string[]): void {
  // nobody reads any more: that is no reason to stop
  process.stdout.on('error', () => undefined);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void stop(0));
  if (env.npm_lifecycle_event) whenParentEnds(() => void stop(0));
  start(env, args).catch((error: unknown) => {
    if (stopping) return;
    for (const line of faultsOf(error)) process.stderr.write(`${line}\n`);
    void stop(1);
  });
}
