import { connect } from 'node:net';
import { AgentsServiceService } from 'proto/agents/v1/agents.ts';
import { newId } from 'platform/core/ids.ts';
import { settingOf, type ProcessName } from 'platform/core/processes.ts';
import { eventually } from 'platform/service/test-end.ts';
import { answerWith, startEndpoint } from '../../services/agents/test/runtimes/network/endpoint.ts';
import { SECRET } from '../../services/agents/test/runtimes/test-runtimes.ts';
import type { Load, SentRun } from './load.ts';
import { LONG_ENGINE_TIMEOUTS } from './load-settings.ts';
import type { Stack } from './stack.ts';
import type { TenantRef } from './organization-records.ts';

/** Drains and leases outlast every restart, and no job ends a run. Agents may call this machine. */
export const PATIENT = {
  ...LONG_ENGINE_TIMEOUTS,
  ...{ DRAIN_MS: '120000', KEEP_IDLE_MS: '2000', RUN_LEASE_MS: '60000', AGENT_NETWORKS: '127.0.0.1/32' },
  ...{ REAPER_INTERVAL_MS: '3600000', SWEEP_INTERVAL_MS: '3600000' },
};
/** In the order in which they are restarted. */
export const NAMES: readonly ProcessName[] = ['gateway', 'agents', 'memory', 'credits', 'auth'];

const NAME = 'lasting';
const RUNS = 4;

/** Runs of an http agent, which last until its endpoint is told to answer. */
export interface LastingRuns {
  /** Gives an organization the agent. */
  prepare(tenant: TenantRef): Promise<void>;
  /**
   * Restarts a process during such runs, which end when it drains or has been restarted.
   * @param load whose requests go on before, during and after it
   */
  restart(load: Load, name: ProcessName, replica: number): Promise<void>;
  close(): Promise<void>;
}

/** @param acknowledged requests that must succeed during a restart, and again after it */
export async function openLastingRuns(stack: Stack, acknowledged: number): Promise<LastingRuns> {
  let release: () => void = () => undefined;
  let held = Promise.resolve();
  const endpoint = await startEndpoint(async (_request, response) => {
    await held;
    answerWith(response, { output: { left: 0 } });
  });
  const { operator, baseUrls } = stack;
  const definition = {
    ...{ apiVersion: 'agents/v1', kind: 'FunctionalAgent', name: NAME, argumentsSchema: {} },
    limits: { wallMs: 300_000 },
    runtime: { type: 'http', url: `${endpoint.url}/`, secretRef: 'signing', retries: 0 },
  };
  const placeOf = (name: ProcessName, replica: number): string =>
    stack.env[settingOf(name, 'ADDRESS')]!.split(',')[replica]!;

  /** Half of the runs have a key. They come by all gateways in turn. @returns what ends them */
  async function start(load: Load): Promise<() => Promise<SentRun[]>> {
    ({ promise: held, resolve: release } = Promise.withResolvers<void>());
    const before = endpoint.requests.length;
    const runs = Array.from({ length: RUNS }, (_, n) =>
      load.run(NAME, { n }, n < RUNS / 2 ? newId() : undefined, baseUrls[n % baseUrls.length]),
    );
    const all = Promise.all(runs);
    const begun = eventually(() => endpoint.requests.length === before + RUNS);
    await Promise.race([begun, all]);
    return () => (release(), all);
  }

  return {
    async prepare({ organizationId }) {
      const agents = operator.client(AgentsServiceService, 'agents');
      const as = operator.as(organizationId);
      await agents.setSecret({ name: 'signing', value: SECRET, overlapSeconds: 0 }, as);
      await agents.applyAgent({ definition: JSON.stringify(definition) }, as);
      await agents.publishAgent({ name: NAME, version: undefined }, as);
    },
    async restart(load, name, replica) {
      const endRuns = await start(load);
      const restarted = stack.drainAndAwait(name, replica);
      // what holds runs stays in its drain until they end
      if (name === 'gateway' || name === 'agents') await eventually(() => isRefused(placeOf(name, replica)));
      else await restarted;
      await load.untilAcknowledged(acknowledged);
      await endRuns();
      await restarted;
      await load.untilAcknowledged(acknowledged);
    },
    async close() {
      release();
      await endpoint.close();
    },
  };
}

const isRefused = (place: string): Promise<boolean> =>
  new Promise((resolve) => {
    const [host, port] = place.split(':');
    const socket = connect(Number(port), host, () => {
      socket.destroy();
      resolve(false);
    });
    socket.on('error', () => resolve(true));
  });
