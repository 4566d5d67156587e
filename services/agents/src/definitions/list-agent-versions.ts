import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { requireText, ServiceError } from 'platform/core/errors.ts';
import type { ListAgentVersionsRequest, ListAgentVersionsResponse } from 'proto/agents/v1/agents.ts';
import type { Deps } from '../deps.ts';
import { agentVersionMessage } from './message.ts';

const MAX_VERSIONS = 100;

/** The newest hundred versions, newest first. @throws ServiceError NOT_FOUND */
export async function listAgentVersions(
  deps: Pick<Deps, 'definitions'>,
  request: ListAgentVersionsRequest,
  context: CallContext,
): Promise<ListAgentVersionsResponse> {
  const name = requireText('name', request.name);
  const versions = await deps.definitions.listVersions(organizationOfCall(context), name, MAX_VERSIONS);
  if (versions.length === 0) throw new ServiceError('NOT_FOUND', 'Agent not found');
  return { versions: versions.map(agentVersionMessage) };
}
