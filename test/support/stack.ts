import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { JobServiceService } from 'proto/platform/v1/jobs.ts';
import { sumOfRounds } from 'platform/jobs/job-service.ts';
import { keyFolderOf } from 'platform/rpc/keys.ts';
import { openOperator, type Operator } from 'platform/rpc/operator.ts';
import type { ProcessName } from 'platform/core/processes.ts';
import { closedInTheEnd } from 'platform/service/test-end.ts';
import { layOutKeys, temporaryFolder } from 'platform/service/testing.ts';
import { freeAddresses, replicaAddresses } from './addresses.ts';
import { HIGH_RATES } from './high-rates.ts';
import { childrenOf, commandOf } from './process-tree.ts';
import { requireNoSecrets } from './secret-search.ts';
import { NO_ENGINES, sharedEngines } from './shared-engines.ts';
import { makeTenant, type Tenant, type TenantOptions } from './tenant.ts';

export const REPOSITORY = join(import.meta.dirname, '../..');

/** What a test needs of a running product, whoever has started it. */
export interface RunningStack {
  /** URL of the first gateway. */
  baseUrl: string;
  /** URLs of all gateways: one, or two on shared engines. */
  baseUrls: readonly string[];
  folder: string;
  env: Record<string, string>;
  operator: Operator;
  /** Creates an organization with these credits and these agent definitions, published. */
  tenant(given?: TenantOptions): Promise<Tenant>;
  /** Runs one round of the job on every replica and adds up the results. */
  runJob(service: ProcessName, name: string): Promise<{ ran: boolean; count: number }>;
}

export interface Stack extends RunningStack {
  /** Everything that the first launcher has printed. */
  output(): string;
  /** The same for every launcher: one, or two on shared engines. */
  outputs(): readonly string[];
  launcher: ChildProcess;
  /** The launcher of each replica: one, or two on shared engines. */
  launchers: readonly ChildProcess[];
  /** Gives the second replica the key files of the first, as a cluster exchanges the files of a mounted secret. */
  publishKeys(): void;
  /** Process id of a process of the first replica, from the operating system. */
  pidOf(name: ProcessName): number;
  /** The same for every replica. */
  pidsOf(name: ProcessName): number[];
  /** kill -9 of one process of the first replica; resolves when the launcher has restarted it. */
  killAndAwait(name: ProcessName): Promise<void>;
  /** SIGTERM to one process of a replica; resolves when it has drained and the launcher has restarted it. */
  drainAndAwait(name: ProcessName, replica: number): Promise<void>;
  stop(): Promise<void>;
}

export interface StackOptions {
  env?: Record<string, string>;
  /** The data folder of an earlier stack, to start again on its data. */
  folder?: string;
  /** Further settings of the second replica only. */
  replicaEnv?: Record<string, string>;
  /** 1: start no second replica, even on shared engines. */
  replicas?: 1;
}

/** Two replicas need all of these: what they kept in a file each, they would not share. */
const SHARED_BY_REPLICAS = ['MONGODB_URL', 'REDIS_URL', 'KAFKA_BROKERS'];

/**
 * Starts the real product: the launcher of `npm start` and its five processes, on free ports and a temporary folder.
 * On shared engines (npm run test:engines) a second launcher runs a second replica of each process at the same time.
 */
export async function startStack({ env: given = {}, folder, replicaEnv, replicas }: StackOptions = {}): Promise<Stack> {
  const temporary = folder === undefined ? temporaryFolder() : { path: folder, remove: () => undefined };
  const engines = sharedEngines(temporary.path, { ...process.env, ...given });
  const [own, other] =
    replicas === 1 || !SHARED_BY_REPLICAS.every((name) => engines.env[name])
      ? [await freeAddresses()]
      : await replicaAddresses();
  const env: Record<string, string> = { ...own, ...HIGH_RATES, DATA_DIR: temporary.path, ...engines.env, ...given };
  await layOutKeys(keyFolderOf(temporary.path));
  const second = other && launchReplica(temporary.path, { ...env, ...other, ...replicaEnv });
  const { launcher, output } = launch(env);
  try {
    await Promise.all([
      untilPrinted(launcher, output, 'Ctrl-C stops it'),
      second && untilPrinted(second.launcher, second.output, 'Ctrl-C stops it'),
    ]);
  } catch (error) {
    await Promise.all([launcher, second?.launcher].map(stopLauncher));
    throw error;
  }
  const baseUrls = [own, other].flatMap((addresses) => (addresses ? [`http://${addresses.GATEWAY_LISTEN}`] : []));
  const running = connect({ baseUrls, folder: temporary.path, env });
  const launchers = second ? [launcher, second.launcher] : [launcher];
  const pidsOf = (name: ProcessName): number[] => launchers.map(({ pid }) => childNamed(pid as number, name));
  const pidOf = (name: ProcessName): number => childNamed(launcher.pid as number, name);
  async function signalAndAwait(name: ProcessName, signal: NodeJS.Signals, replica = 0): Promise<void> {
    const one = [{ launcher, output }, second][replica]!;
    const seen = one.output().length;
    process.kill(childNamed(one.launcher.pid as number, name), signal);
    await untilPrinted(one.launcher, () => one.output().slice(seen), `${name} is back`);
  }
  return {
    ...running,
    output,
    launcher,
    launchers,
    pidOf,
    pidsOf,
    outputs: () => [output(), ...(second ? [second.output()] : [])],
    publishKeys: () => other && copyKeys(temporary.path),
    killAndAwait: (name) => signalAndAwait(name, 'SIGKILL'),
    drainAndAwait: (name, replica) => signalAndAwait(name, 'SIGTERM', replica),
    stop: closedInTheEnd(async () => {
      running.operator.close();
      await Promise.all(launchers.map(stopLauncher));
      const outputs = [output(), ...(second ? [second.output()] : [])];
      await requireNoSecrets(temporary.path, env, outputs).finally(async () => {
        if (folder === undefined) await engines.remove();
        temporary.remove();
      });
    }),
  };
}

/** Connects a test to a stack whose processes already answer. The caller closes the operator's connections. */
export function connect({ baseUrls, folder, env }: Pick<RunningStack, 'baseUrls' | 'folder' | 'env'>): RunningStack {
  const operator = openOperator({ keyFolder: keyFolderOf(folder), addresses: env });
  return {
    baseUrl: baseUrls[0] as string,
    baseUrls,
    folder,
    env,
    operator,
    tenant: (options = {}) => makeTenant(operator, baseUrls, options),
    async runJob(service, name) {
      // a job under a lease runs on the replica that holds the lease; the others report that it did not run
      const replicas = await operator.clients(JobServiceService, service);
      return sumOfRounds(await Promise.all(replicas.map((replica) => replica.runJob({ name }, operator.as()))));
    },
  };
}

/**
 * Starts a launcher as `npm start` does, without waiting for anything, for tests of the start itself. It is stopped in
 * the end.
 * @param root where the sources of its release are
 */
export function launch(
  env: Record<string, string>,
  args: readonly string[] = [],
  root = REPOSITORY,
): { launcher: ChildProcess; output: () => string } {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: { start: string } };
  const [, ...command] = scripts.start.split(' ');
  const launcher = spawn(process.execPath, [...command, ...args], {
    cwd: root,
    env: { ...process.env, NODE_OPTIONS: '', ...NO_ENGINES, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  closedInTheEnd(() => stopLauncher(launcher));
  let printed = '';
  for (const stream of [launcher.stdout, launcher.stderr])
    stream.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  return { launcher, output: () => printed };
}

/** Resolves when the output contains the text; rejects when the process ends before that. */
export function untilPrinted(child: ChildProcess, output: () => string, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const check = (): void => {
      if (!output().includes(text)) return;
      child.stdout?.off('data', check);
      child.off('exit', ended);
      resolve();
    };
    const ended = (): void => reject(new Error(`ended without "${text}":\n${output()}`));
    child.stdout?.on('data', check);
    child.on('exit', ended);
    check();
  });
}

/** Stops it as Ctrl-C does; resolves when it has exited. */
async function stopLauncher(launcher: ChildProcess | undefined): Promise<void> {
  if (!launcher || launcher.exitCode !== null || launcher.signalCode !== null) return;
  const ended = once(launcher, 'exit');
  launcher.kill('SIGINT');
  await ended;
}

function childNamed(launcher: number, name: ProcessName): number {
  const main = name === 'gateway' ? '/gateway/src/main.ts' : `/services/${name}/src/main.ts`;
  const pid = childrenOf(launcher).find((candidate) => commandOf(candidate).includes(main));
  if (pid === undefined) throw new Error(`${name} is not running`);
  return pid;
}

/** A second launcher with a folder that holds nothing but the same keys, as a cluster mounts one secret everywhere. */
function launchReplica(folder: string, env: Record<string, string>): ReturnType<typeof launch> {
  copyKeys(folder);
  return launch({ ...env, DATA_DIR: replicaFolderOf(folder) });
}

const replicaFolderOf = (folder: string): string => join(folder, 'replica');

const copyKeys = (folder: string): void =>
  cpSync(keyFolderOf(folder), keyFolderOf(replicaFolderOf(folder)), { recursive: true });
