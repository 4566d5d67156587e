import { newId } from 'platform/core/ids.ts';
import { servicePrincipal } from 'platform/core/principal.ts';
import type { ServiceClient } from 'platform/rpc/call.ts';
import type { AuthServiceService, RunActor } from 'proto/auth/v1/auth.ts';
import type { ExecutionRecord } from './store.ts';

export type Auth = Pick<ServiceClient<typeof AuthServiceService>, 'findStoppedActors'>;

/** On whose behalf a run is made. */
export const runActorOf = ({ organizationId, actor }: Pick<ExecutionRecord, 'organizationId' | 'actor'>): RunActor => ({
  organizationId,
  serverTokenId: actor.kind === 'server_token' ? actor.id : '',
});

export const sameActor = (one: RunActor, other: RunActor): boolean =>
  one.organizationId === other.organizationId && one.serverTokenId === other.serverTokenId;

/**
 * Those of the actors whose runs must not go on; auth is asked about each once. While auth does not answer, nobody is
 * known to be stopped.
 */
export async function findStopped(auth: Auth, actors: readonly RunActor[]): Promise<readonly RunActor[]> {
  const distinct = [...new Map(actors.map((actor) => [JSON.stringify(actor), actor])).values()];
  const call = { principal: servicePrincipal('agents'), requestId: newId() };
  const { stopped } = await auth.findStoppedActors({ actors: distinct }, call).catch(() => ({ stopped: [] }));
  return stopped;
}
