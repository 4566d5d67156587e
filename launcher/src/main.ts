import { execFileSync } from 'node:child_process';
import { mkdirSync, accessSync, constants } from 'node:fs';
import { join, resolve } from 'node:path';
import { createKeys, keyFileOf, peersFileOf } from 'platform/keys.ts';
import { keyFolderOf, openOperator, operatorName } from 'platform/operator.ts';
import { PROCESSES } from 'platform/processes.ts';
import { StartError } from 'platform/start-error.ts';
import { lockFile } from 'platform/store/file-lock.ts';
import { PartEnded, superviseChild, type Part, type SupervisedChild } from './child.ts';
import { seed } from './seed.ts';
import { farewell, greeting, HELP } from './words.ts';

const REPOSITORY = join(import.meta.dirname, '../..');
/** In the order in which they stop: whoever calls goes before whom it calls. */
const PARTS: readonly Part[] = [
  { name: 'gateway', folder: 'gateway' },
  { name: 'agents', folder: 'services/agents' },
  { name: 'memory', folder: 'services/memory' },
  { name: 'credits', folder: 'services/credits' },
  { name: 'auth', folder: 'services/auth' },
];

const startedAt = Date.now();
const seconds = (): string => `${((Date.now() - startedAt) / 1000).toFixed(1)} s`;
const say = (line: string): void => void process.stdout.write(`${line}\n`);

const children: SupervisedChild[] = [];
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

async function main(): Promise<void> {
  const args = process.argv.slice(2);
  if (args.includes('--help') || args.includes('-h')) return say([HELP, ...PARTS.map(settingsOf)].join('\n'));
  if (args.length > 0) throw new StartError(`Unknown argument ${args[0]}; npm start -- --help lists what can be set`);

  const dataFolder = resolve(process.env.INIT_CWD ?? REPOSITORY, process.env.DATA_DIR || join(REPOSITORY, 'data'));
  claimFolder(dataFolder);
  const keyFolder = keyFolderOf(dataFolder);
  createKeys(keyFolder, [...Object.keys(PROCESSES), operatorName()]);

  const env = { LOG_LEVEL: 'warn', NODE_COMPILE_CACHE: join(REPOSITORY, 'node_modules/.cache/compile'), ...process.env, DATA_DIR: dataFolder };
  const ready = PARTS.map(async (part) => {
    const child = superviseChild(part, { ...env, KEY_FILE: keyFileOf(keyFolder, part.name), PEERS_FILE: peersFileOf(keyFolder) }, say);
    children.push(child);
    const address = await child.ready;
    say(`  ${part.name.padEnd(8)} ${address.padEnd(22)} ${seconds()}`);
    return address;
  });
  const [gatewayAddress] = await Promise.all(ready);
  const operator = openOperator({ keyFolder, addresses: process.env });
  const seeded = await seed(operator, dataFolder);
  operator.close();
  say(greeting({ baseUrl: `http://${gatewayAddress}`, seconds: seconds(), seeded }));
}

const settingsOf = (part: Part): string => execFileSync(process.execPath, [join(REPOSITORY, part.folder, 'src/main.ts'), '--help'], { encoding: 'utf8' });

/** The folder is there, can be written, and no other start uses it. */
function claimFolder(dataFolder: string): void {
  try {
    mkdirSync(dataFolder, { recursive: true, mode: 0o700 });
    accessSync(dataFolder, constants.W_OK);
  } catch (error) {
    throw new StartError(`The data folder ${dataFolder} cannot be written: ${(error as Error).message}`);
  }
  try {
    lockFile(join(dataFolder, 'launcher'));
  } catch (error) {
    throw new StartError(`The data folder ${dataFolder} is in use by another start`, { cause: error });
  }
}

process.on('SIGINT', () => void stop(0));
process.on('SIGTERM', () => void stop(0));
main().catch((error: unknown) => {
  if (stopping) return;
  // a part that ended with code 1 has said why itself
  const said = error instanceof PartEnded && error.exitCode === 1;
  if (!said) process.stderr.write(`The start failed: ${error instanceof Error ? error.message : String(error)}\n`);
  void stop(1);
});
