import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { requireText, ServiceError } from 'platform/core/errors.ts';
import type { GetAgentVersionRequest, GetAgentVersionResponse } from 'proto/agents/v1/agents.ts';
import type { Deps } from '../deps.ts';
import { agentVersionMessage } from './message.ts';

/** The version that the request names, or the published one, or the newest. @throws ServiceError NOT_FOUND */
export async function getAgentVersion(
  { definitions }: Pick<Deps, 'definitions'>,
  request: GetAgentVersionRequest,
  context: CallContext,
): Promise<GetAgentVersionResponse> {
  const name = requireText('name', request.name);
  const organizationId = organizationOfCall(context);
  const agent = await definitions.byName(organizationId, name);
  if (!agent) throw new ServiceError('NOT_FOUND', 'Agent not found');
  const number = request.version ?? agent.publishedVersion ?? agent.latestVersion;
  const version = await definitions.versionByNumber(organizationId, name, number);
  if (!version) throw new ServiceError('NOT_FOUND', 'Agent version not found');
  return { version: agentVersionMessage(version), definition: version.definition };
}
