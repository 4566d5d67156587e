import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import type { ListAgentsRequest, ListAgentsResponse } from 'proto/agents/v1/agents.ts';
import type { Deps } from '../deps.ts';
import { agentMessage } from './message.ts';

/** All agents of the organization in any state, sorted by name. */
export async function listAgents(
  deps: Pick<Deps, 'definitions'>,
  _request: ListAgentsRequest,
  context: CallContext,
): Promise<ListAgentsResponse> {
  const agents = await deps.definitions.list(organizationOfCall(context));
  return { agents: agents.map(agentMessage) };
}
