import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { ServiceError } from 'platform/core/errors.ts';
import type { ListAgentVersionsRequest, ListAgentVersionsResponse } from 'proto/agents/v1/agents.ts';
import type { Deps } from '../deps.ts';
import { versionMessage } from './message.ts';

const NEWEST = 100;

/** The newest hundred versions, newest first. */
export async function listAgentVersions(
  deps: Pick<Deps, 'definitions'>,
  request: ListAgentVersionsRequest,
  context: CallContext,
): Promise<ListAgentVersionsResponse> {
  const versions = await deps.definitions.listVersions(organizationOfCall(context), request.name, NEWEST);
  if (versions.length === 0) throw new ServiceError('NOT_FOUND', 'Agent not found');
  return { versions: versions.map(versionMessage) };
}
