import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { settingOf, type ProcessName } from 'platform/core/processes.ts';
import { keyFolderOf } from 'platform/rpc/keys.ts';
import { newId } from 'platform/core/ids.ts';
import { closedInTheEnd, eventually } from 'platform/service/test-end.ts';
import { layOutKeys, temporaryFolder } from 'platform/service/testing.ts';
import { freeAddresses, replicaAddresses } from '../support/addresses.ts';
import { HIGH_RATES } from '../support/high-rates.ts';
import { QUICK } from '../support/load-settings.ts';
import { request, type Reply } from '../support/request.ts';
import { sharedEngines } from '../support/shared-engines.ts';
import { connect, type RunningStack } from '../support/stack.ts';
import { startProcess, type StackProcess } from '../support/stack-process.ts';
import type { Tenant } from '../support/tenant.ts';

/** A run of an agent of LOAD_AGENTS. */
const RUN = { agentName: QUICK, args: { n: 1 } };
/** Pino's levels from `warn` on. */
const WARNING = /"level":[4-6]0/;
/** An order in which a process starts after those that it calls. */
export const CALLED_FIRST: readonly ProcessName[] = ['auth', 'credits', 'memory', 'agents', 'gateway'];

/** One or two replicas of every process, each of a release of its own. */
export interface Fleet extends RunningStack {
  /** URLs of the gateways that take requests, as a load balancer knows them. */
  inService: readonly string[];
  /** The lines of warnings and errors of all processes so far. */
  warnings(): string;
  /** Sends a request as the load balancer does, which lets those at a gateway end before that gateway is stopped. */
  ask: typeof request;
  /** Stops a process as a rolling update does; it must end by itself. */
  drain(name: ProcessName, replica: number): Promise<void>;
  /** Starts a process at the address of the one before, of the release in the folder `root`. */
  start(name: ProcessName, replica: number, root: string): Promise<void>;
  /**
   * Resolves when everybody who calls the process under load has found it: a rolling update goes on no earlier. Who has
   * handled a request is in the logs.
   */
  untilCalled(tenant: Tenant, name: ProcessName, replica: number): Promise<void>;
  stop(): Promise<void>;
}

/** Starts all processes of the release in the folder `root`: two replicas where they share all engines. */
export async function startFleet(root: string, settings: Record<string, string> = {}): Promise<Fleet> {
  const temporary = temporaryFolder();
  const engines = sharedEngines(temporary.path);
  const places = engines.env.MONGODB_URL ? await replicaAddresses() : [await freeAddresses()];
  await layOutKeys(keyFolderOf(temporary.path));
  const baseUrls = places.map(({ GATEWAY_LISTEN }) => `http://${GATEWAY_LISTEN}`);
  const env = { ...HIGH_RATES, DATA_DIR: temporary.path, ...engines.env, ...settings, ...places[0] };
  const stack = connect({ baseUrls, folder: temporary.path, env });
  const inService: string[] = [];
  const underWay = new Map(baseUrls.map((url) => [url, new Set<Promise<Reply>>()]));
  const warnings: string[] = [];
  const running = new Map<string, StackProcess & { handled: Set<string> }>();

  async function start(name: ProcessName, replica: number, from: string): Promise<void> {
    const own = { [settingOf(name, 'LISTEN')]: places[replica]![settingOf(name, 'LISTEN')]!, LOG_LEVEL: 'debug' };
    const started = await startProcess(stack, name, own, { root: from, stderr: 'pipe' });
    const handled = new Set<string>();
    createInterface(started.child.stderr!).on('line', (line) => {
      if (WARNING.test(line)) warnings.push(line);
      const [, requestId] = /"requestId":"([^"]+)"/.exec(line) ?? [];
      if (requestId !== undefined) handled.add(requestId);
    });
    running.set(`${name} ${replica}`, { ...started, handled });
    if (name === 'gateway') inService.push(baseUrls[replica]!);
  }
  async function drain(name: ProcessName, replica: number): Promise<void> {
    const { child } = running.get(`${name} ${replica}`)!;
    if (name === 'gateway') {
      const url = baseUrls[replica]!;
      inService.splice(inService.indexOf(url), 1);
      await Promise.allSettled(underWay.get(url)!);
    }
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    expect({ name, ended: await ended }).toEqual({ name, ended: [0, null] });
  }

  const ask: typeof request = (baseUrl, ...rest) => {
    const replies = underWay.get(baseUrl)!;
    const reply = request(baseUrl, ...rest);
    replies.add(reply);
    return reply.finally(() => replies.delete(reply));
  };

  async function untilCalled({ token }: Tenant, name: ProcessName, replica: number): Promise<void> {
    async function askOnce(url: string): Promise<string> {
      const requestId = newId();
      const headers = { 'X-Request-Id': requestId };
      if (name === 'credits') await ask(url, 'POST', '/api/agent/run', { token, headers, body: RUN });
      else await ask(url, 'GET', name === 'agents' ? '/api/agent/run' : '/api/memory/types', { token, headers });
      return requestId;
    }
    /** Asks at this gateway, several times at once so that each replica gets some, until a request came `by` these. */
    async function untilReached(url: string, ...by: readonly string[]): Promise<void> {
      const asked: string[] = [];
      await eventually(async () => {
        asked.push(...(await Promise.all(Array.from({ length: 4 }, () => askOnce(url)))));
        return asked.some((id) => by.every((place) => running.get(place)!.handled.has(id)));
      });
    }
    if (name === 'gateway') return;
    const place = `${name} ${replica}`;
    if (name === 'credits')
      for (const caller of places.keys()) await untilReached(inService[0]!, `agents ${caller}`, place);
    else for (const url of inService) await untilReached(url, place);
  }

  await Promise.all(CALLED_FIRST.flatMap((name) => places.map((_, replica) => start(name, replica, root))));
  return {
    ...stack,
    warnings: () => warnings.join('\n'),
    inService,
    ask,
    drain,
    start,
    untilCalled,
    stop: closedInTheEnd(async () => {
      stack.operator.close();
      for (const name of CALLED_FIRST.toReversed()) await Promise.all(places.map((_, replica) => drain(name, replica)));
      await engines.remove();
      temporary.remove();
    }),
  };
}
