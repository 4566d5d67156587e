import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AgentsServiceService } from 'proto/agents/v1/agents.ts';
import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { CreditsServiceService } from 'proto/credits/v1/credits.ts';
import { JobServiceService } from 'proto/platform/v1/jobs.ts';
import { newId } from 'platform/core/ids.ts';
import { sumOfRounds } from 'platform/jobs/job-service.ts';
import { createKeys, keyFolderOf } from 'platform/rpc/keys.ts';
import { openOperator, operatorName, type Operator } from 'platform/rpc/operator.ts';
import { PROCESSES, type ProcessName } from 'platform/core/processes.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { freeAddresses, replicaAddresses } from './addresses.ts';
import { NO_ENGINES, sharedEngines } from './shared-engines.ts';

export const REPOSITORY = join(import.meta.dirname, '../..');

export interface Reply {
  /** Scheme and host of the gateway that answered. */
  origin: string;
  status: number;
  headers: Headers;
  text: string;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into bodies of every shape
  body: any;
}

/** An organization with a token of its own, made through the operator's gRPC. */
export interface Tenant {
  organizationId: string;
  name: string;
  administrator: string;
  token: string;
  /** As a good client asks: again, when the answer is that the service is not available and when it may be asked again. */
  request: Ask;
  requestOnce: Ask;
}
type Ask = (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Reply>;

export interface Stack {
  baseUrl: string;
  /** Everything that the launcher has printed. */
  output(): string;
  /** The same of every launcher: one, or two on shared engines. */
  outputs(): readonly string[];
  launcher: ChildProcess;
  /** The launcher of every replica: one, or two on shared engines. */
  launchers: readonly ChildProcess[];
  folder: string;
  env: Record<string, string>;
  operator: Operator;
  tenant(given?: { tier?: string; credits?: number; agents?: readonly object[] }): Promise<Tenant>;
  runJob(service: ProcessName, name: string): Promise<{ ran: boolean; count: number }>;
  /** Where the gateways answer: one, or two on shared engines. */
  baseUrls: readonly string[];
  /** Process id of a part, as the operating system tells it. */
  pidOf(part: ProcessName): number;
  /** The same of every replica. */
  pidsOf(part: ProcessName): number[];
  /** kill -9 of one part; resolves when the launcher has it back. */
  killAndAwait(part: ProcessName): Promise<void>;
  stop(): Promise<void>;
}

export interface StackOptions {
  env?: Record<string, string>;
  /** A folder of an earlier stack, to start again on its data. */
  folder?: string;
  /** What the processes of the second replica alone are told. */
  replicaEnv?: Record<string, string>;
  /** 1: no second replica, whatever the engines. */
  replicas?: 1;
}

/** A replica that keeps one of these in a file of its own is no replica. */
const SHARED_BY_REPLICAS = ['MONGODB_URL', 'REDIS_URL', 'KAFKA_BROKERS'];

/**
 * The real product: `npm start`'s launcher with its five processes, on free ports and a folder of its own. On shared engines
 * (npm run test:engines) a second launcher runs a second replica of each; both start, seed and work at the same time.
 */
export async function startStack({ env: given = {}, folder, replicaEnv, replicas }: StackOptions = {}): Promise<Stack> {
  const temporary = folder === undefined ? temporaryFolder() : { path: folder, remove: () => undefined };
  const engines = sharedEngines(temporary.path, { ...process.env, ...given });
  const [own, other] =
    replicas === 1 || !SHARED_BY_REPLICAS.every((name) => engines.env[name])
      ? [await freeAddresses()]
      : await replicaAddresses();
  const env: Record<string, string> = { ...own, DATA_DIR: temporary.path, ...engines.env, ...given };
  createKeys(keyFolderOf(temporary.path), [...Object.keys(PROCESSES), operatorName()]);
  const second = other && launchReplica(temporary.path, { ...env, ...other, ...replicaEnv });
  const { launcher, output } = launch(env);
  try {
    await Promise.all([
      untilPrinted(launcher, output, 'Ctrl-C stops it'),
      second && untilPrinted(second.launcher, second.output, 'Ctrl-C stops it'),
    ]);
  } catch (error) {
    await Promise.all([launcher, second?.launcher].map(endOf));
    throw error;
  }
  const operator = openOperator({ keyFolder: keyFolderOf(temporary.path), addresses: env });
  const baseUrls = [own, other].flatMap((addresses) => (addresses ? [`http://${addresses.GATEWAY_LISTEN}`] : []));
  const baseUrl = baseUrls[0] as string;
  const launchers = second ? [launcher, second.launcher] : [launcher];
  const pidsOf = (part: ProcessName): number[] => launchers.map(({ pid }) => partOf(pid as number, part));
  const pidOf = (part: ProcessName): number => partOf(launcher.pid as number, part);
  return {
    baseUrl,
    baseUrls,
    output,
    launcher,
    launchers,
    folder: temporary.path,
    env,
    operator,
    pidOf,
    pidsOf,
    outputs: () => [output(), ...(second ? [second.output()] : [])],
    tenant: (options = {}) => makeTenant(operator, baseUrls, options),
    async runJob(service, name) {
      // of a job under a lease it is the replica that holds it
      return sumOfRounds(
        await Promise.all(
          operator.clients(JobServiceService, service).map((replica) => replica.runJob({ name }, operator.as())),
        ),
      );
    },
    async killAndAwait(part) {
      const seen = output().length;
      process.kill(pidOf(part), 'SIGKILL');
      await untilPrinted(launcher, () => output().slice(seen), `${part} is back`);
    },
    async stop() {
      operator.close();
      await Promise.all(launchers.map(endOf));
      if (folder === undefined) await engines.remove();
      temporary.remove();
    },
  };
}

/** The launcher alone, for tests of the start itself. */
export function launch(
  env: Record<string, string>,
  args: readonly string[] = [],
): { launcher: ChildProcess; output: () => string } {
  const launcher = spawn(process.execPath, [join(REPOSITORY, 'launcher/src/main.ts'), ...args], {
    env: { ...process.env, NODE_OPTIONS: '', ...NO_ENGINES, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let printed = '';
  for (const stream of [launcher.stdout, launcher.stderr])
    stream.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  return { launcher, output: () => printed };
}

/** Resolves when the text is in the output; rejects when the process ends without it. */
export function untilPrinted(child: ChildProcess, output: () => string, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const look = (): void => {
      if (!output().includes(text)) return;
      child.stdout?.off('data', look);
      child.off('exit', ended);
      resolve();
    };
    const ended = (): void => reject(new Error(`ended without "${text}":\n${output()}`));
    child.stdout?.on('data', look);
    child.on('exit', ended);
    look();
  });
}

/** Asks until it holds: for states that another process reaches in its own time. */
export async function eventually<T>(ask: () => Promise<T | undefined | false> | T | undefined | false): Promise<T> {
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    // the processes that it waits for need the processor
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

export async function request(
  baseUrl: string,
  method: string,
  path: string,
  {
    token,
    body,
    headers = {},
    signal,
  }: { token?: string; body?: unknown; headers?: Record<string, string>; signal?: AbortSignal } = {},
): Promise<Reply> {
  const response = await fetch(baseUrl + path, {
    method,
    signal,
    headers: {
      ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...headers,
    },
    body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body),
  });
  const text = await response.text();
  return {
    origin: new URL(response.url).origin,
    status: response.status,
    headers: response.headers,
    text,
    body: text === '' ? undefined : JSON.parse(text),
  };
}

async function endOf(launcher: ChildProcess | undefined): Promise<void> {
  if (!launcher || launcher.exitCode !== null || launcher.signalCode !== null) return;
  const ended = once(launcher, 'exit');
  launcher.kill('SIGINT');
  await ended;
}

/** Requests go to the gateways in turn. */
async function makeTenant(
  operator: Operator,
  baseUrls: readonly string[],
  { tier = 'enterprise', credits = 0, agents = [] }: { tier?: string; credits?: number; agents?: readonly object[] },
): Promise<Tenant> {
  const auth = operator.client(AuthServiceService, 'auth');
  const name = `tenant-${newId()}`;
  const administrator = `${newId()}@example.com`;
  const { organization } = await auth.createOrganization({ name, tier }, operator.as());
  const organizationId = organization?.id as string;
  await auth.createUser(
    { email: administrator, name: 'Administrator', roles: ['admin', 'security_admin'], groups: [] },
    operator.as(organizationId),
  );
  const { principal } = await auth.assumeUser({ email: administrator }, operator.as(organizationId));
  const { value: token } = await auth.createServerToken(
    { name: 'tests', expiresAt: undefined },
    operator.asPrincipal(principal as never),
  );
  if (credits > 0)
    await operator
      .client(CreditsServiceService, 'credits')
      .grant({ id: newId(), amountMicros: credits * 1_000_000, note: '' }, operator.as(organizationId));
  for (const definition of agents) {
    const { agent } = await operator
      .client(AgentsServiceService, 'agents')
      .applyAgent({ definition: JSON.stringify(definition) }, operator.as(organizationId));
    await operator
      .client(AgentsServiceService, 'agents')
      .publishAgent({ name: agent?.name as string, version: undefined }, operator.as(organizationId));
  }
  let turn = 0;
  const requestOnce: Ask = (method, path, body, headers) =>
    request(baseUrls[turn++ % baseUrls.length] as string, method, path, { token, body, headers });
  return {
    organizationId,
    name,
    administrator,
    token,
    requestOnce,
    request: (...asked) => untilAvailable(() => requestOnce(...asked)),
  };
}

const ASKED_AT_MOST = 5;

/** Asks again after 503 `unavailable`, of which nothing was done: the machine may have stalled for longer than the 3 s that a token is looked at. */
export async function untilAvailable(ask: () => Promise<Reply>): Promise<Reply> {
  for (let asked = 1; ; asked++) {
    const reply = await ask();
    const retryAfterS = Number(reply.headers.get('retry-after'));
    if (reply.status !== 503 || reply.body.code !== 'unavailable' || !(retryAfterS > 0) || asked === ASKED_AT_MOST)
      return reply;
    process.stdout.write(`503, asked again: ${reply.text}\n`);
    await new Promise((resolve) => setTimeout(resolve, retryAfterS * 1000));
  }
}

/** An agent of the expression runtime for tests; price in credits. */
export const expressionAgent = (name: string, source: string, given: object = {}): object => ({
  apiVersion: 'agents/v1',
  kind: 'FunctionalAgent',
  name,
  argumentsSchema: {},
  runtime: { type: 'expression', language: 'jsonata', source },
  pricing: { base: 1, max: 1 },
  ...given,
});

function partOf(launcher: number, part: ProcessName): number {
  const folder = part === 'gateway' ? '/gateway/src/main.ts' : `/services/${part}/src/main.ts`;
  const pid = childrenOf(launcher).find((candidate) => commandOf(candidate).includes(folder));
  if (pid === undefined) throw new Error(`${part} is not running`);
  return pid;
}

export const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
export const commandOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
};

/** A second start with the same keys, as a cluster mounts one secret into every replica; its folder holds nothing else. */
function launchReplica(folder: string, env: Record<string, string>): ReturnType<typeof launch> {
  const replica = join(folder, 'replica');
  cpSync(keyFolderOf(folder), keyFolderOf(replica), { recursive: true });
  return launch({ ...env, DATA_DIR: replica });
}
