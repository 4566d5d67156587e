import { AgentsServiceService, type Agent, type PublishAgentRequest } from 'proto/agents/v1/agents.ts';
import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import type { CallOptions } from 'platform/rpc/call.ts';
import type { Context } from './context.ts';

/** Publishes a version of an agent, and says so when the API still cannot run it. */
export async function publishAgent(context: Context, request: PublishAgentRequest, call: CallOptions): Promise<Agent> {
  const { agent } = await context.client(AgentsServiceService, 'agents').publishAgent(request, call);
  const { name, runnable } = agent as Agent;
  if (!runnable) context.note(`The API cannot run ${name}: it is conversational, or it needs interactive tools`);
  else if (!(await tierHasAgents(context, call)))
    context.note(`The API cannot run ${name}: the tier of the organization does not include agents`);
  return agent as Agent;
}

async function tierHasAgents(context: Context, { principal }: CallOptions): Promise<boolean> {
  const auth = context.client(AuthServiceService, 'auth');
  const [{ organization }, { tiers }] = await Promise.all([
    auth.getOrganization({ idOrName: principal.organizationId }, context.asOperator()),
    auth.listTiers({}, context.asOperator()),
  ]);
  return tiers.some(({ name, capabilities }) => name === organization!.tier && capabilities.includes('agents'));
}
