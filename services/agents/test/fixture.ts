import { newId } from 'platform/core/ids.ts';
import type { ServiceClient } from 'platform/rpc/call.ts';
import { OUTBOX } from 'platform/events/outbox.ts';
import type { CloudEvent } from 'platform/events/bus.ts';
import { eventually } from 'platform/service/test-end.ts';
import { OPERATOR, operator, serverToken, startProgram, type RunningProgram } from 'platform/service/testing.ts';
import { AgentsServiceService, type RunAgentRequest } from 'proto/agents/v1/agents.ts';
import type { Deps } from '../src/deps.ts';
import { program } from '../src/service.ts';
import { programEngines } from '../../../test/support/shared-engines.ts';
import { creditsDouble, type CreditsDouble } from './credits-double.ts';

type Client = ServiceClient<typeof AgentsServiceService>;

export interface Agents {
  service: RunningProgram;
  credits: CreditsDouble;
  /** Dependencies of the process that was started last. */
  deps(): Deps;
  /** Calls as the gateway, for a server token of the organization. */
  call<M extends keyof Client>(
    method: M,
    request: Parameters<Client[M]>[0],
    given?: Partial<Parameters<Client[M]>[1]>,
  ): ReturnType<Client[M]>;
  /** Calls as the operator. */
  operate<M extends keyof Client>(method: M, request: Parameters<Client[M]>[0]): ReturnType<Client[M]>;
  run(agentName: string, args: unknown, idempotencyKey?: string): ReturnType<Client['runAgent']>;
  /** Applies a definition and publishes it. */
  publish(definition: Record<string, unknown>): Promise<void>;
  /** Events in the outbox of this service, oldest first. */
  events(): Promise<CloudEvent[]>;
  organizationId: string;
}

export const definitionOf = (
  name: string,
  source: string,
  more: Record<string, unknown> = {},
): Record<string, unknown> => ({
  apiVersion: 'agents/v1',
  kind: 'FunctionalAgent',
  name,
  argumentsSchema: {},
  runtime: { type: 'expression', language: 'jsonata', source },
  ...more,
});

/** An expression that computes until it reaches a limit. */
export const ENDLESS = '($spin := function($n) { $spin($n + 1) }; $spin(0))';

/** One runner; jobs run once at start and then only when a test asks for it. */
const SETTINGS = {
  REAPER_INTERVAL_MS: '3600000',
  RETENTION_INTERVAL_MS: '86400000',
  DENIALS_INTERVAL_MS: '3600000',
  RELAY_INTERVAL_MS: '3600000',
  RUNNERS: '1',
  RUNNERS_MAX: '1',
  DRAIN_MS: '5000',
};

/**
 * Starts the real service over real gRPC on a store of its own, or two replicas of it on shared engines; only credits
 * is a test double. The relay cannot publish, so that the outbox can be read.
 * @param options.credits credits granted to the organization
 */
export async function startAgents({
  credits = 1_000,
  env = {},
}: { credits?: number; env?: Record<string, string> } = {}): Promise<Agents> {
  const double = creditsDouble(credits * 1e6);
  const organizationId = newId();
  const engines = programEngines();
  let deps: Deps;
  const service = await startProgram(
    {
      ...program,
      async openDeps(start) {
        (await start.openBus()).publish = () => Promise.reject(new Error('the bus is down'));
        const auth = { findStoppedActors: async () => ({ stopped: [] }) };
        return (deps = { ...(await program.openDeps(start)), credits: double.client, auth });
      },
    },
    { ...SETTINGS, ...engines.env, ...env },
    undefined,
    engines.replicas,
  );
  const token = serverToken(organizationId, { name: 'ci token' });
  const agents: Agents = {
    service,
    credits: double,
    organizationId,
    deps: () => deps,
    call: (method, request, given) =>
      service.client(AgentsServiceService, 'gateway')[method](request as never, service.as(token, given)) as never,
    operate: (method, request) =>
      service
        .client(AgentsServiceService, OPERATOR)
        [method](request as never, service.as(operator(organizationId))) as never,
    run: (agentName, args, idempotencyKey) =>
      agents.call('runAgent', { agentName, args: JSON.stringify(args), idempotencyKey } satisfies RunAgentRequest),
    async publish(definition) {
      await agents.operate('applyAgent', { definition: JSON.stringify(definition) });
      await agents.operate('publishAgent', { name: definition.name as string });
    },
    events: async () =>
      (await deps.platformStore.find(OUTBOX, { organizationId })).map(({ event }) => JSON.parse(event) as CloudEvent),
  };
  return agents;
}

export async function until(condition: () => Promise<boolean> | boolean): Promise<void> {
  await eventually(condition);
}
