import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { invalid } from 'platform/core/errors.ts';
import { parseJson } from 'platform/core/parse-json.ts';
import type { ListRunnableAgentsRequest, ListRunnableAgentsResponse, RunnableAgent } from 'proto/agents/v1/agents.ts';
import type { Deps } from '../deps.ts';
import { pricingOf, type Definition } from './rules.ts';
import type { AgentVersionRecord } from './store.ts';

/** The fields that `include` may name, and how each is read from a version. */
const INCLUDABLE: {
  [K in Exclude<keyof RunnableAgent, 'name'>]-?: (
    definition: Definition,
    version: AgentVersionRecord,
  ) => RunnableAgent[K];
} = {
  description: (definition) => definition.description ?? '',
  argumentsSchema: (definition) => JSON.stringify(definition.argumentsSchema ?? null),
  outputSchema: (definition) => JSON.stringify(definition.outputSchema ?? null),
  pricing: (definition) => JSON.stringify(pricingOf(definition)),
  version: (_definition, version) => version.version,
};
const isIncludable = (name: string): name is keyof typeof INCLUDABLE => Object.hasOwn(INCLUDABLE, name);

/**
 * The agents that can be run through the API, sorted by name.
 * @throws ServiceError INVALID_REQUEST for an unknown name in `include`
 */
export async function listRunnableAgents(
  deps: Pick<Deps, 'definitions'>,
  request: ListRunnableAgentsRequest,
  context: CallContext,
): Promise<ListRunnableAgentsResponse> {
  const organizationId = organizationOfCall(context);
  const included =
    request.include === undefined
      ? []
      : request.include.split(',').map((name) => {
          if (!isIncludable(name))
            throw invalid(
              '/include',
              `include must be a comma-separated list of ${Object.keys(INCLUDABLE).join(', ')}`,
            );
          return name;
        });

  const agents = await deps.definitions.listRunnable(organizationId);
  if (included.length === 0) return { agents: agents.map(({ name }) => ({ name })) };
  const versions = await deps.definitions.versionsByIds(
    organizationId,
    agents.flatMap(({ publishedVersionId }) => publishedVersionId ?? []),
  );
  return {
    agents: versions.map((version) => {
      const definition = parseJson(version.definition) as Definition;
      return {
        name: version.agent,
        ...Object.fromEntries(included.map((field) => [field, INCLUDABLE[field](definition, version)])),
      };
    }),
  };
}
