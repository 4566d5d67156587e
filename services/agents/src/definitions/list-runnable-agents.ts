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
 * @throws ServiceError INVALID_REQUEST for an unknown or a repeated name in `include`
 */
export async function listRunnableAgents(
  deps: Pick<Deps, 'definitions' | 'schedule'>,
  request: ListRunnableAgentsRequest,
  context: CallContext,
): Promise<ListRunnableAgentsResponse> {
  const organizationId = organizationOfCall(context);
  const included = fieldsOf(request.include);
  const agents = await deps.definitions.listRunnable(organizationId);
  if (included.length === 0) return { agents: agents.map(({ name }) => ({ name })) };
  const versions = await deps.definitions.versionsByIds(
    organizationId,
    agents.flatMap(({ publishedVersionId }) => publishedVersionId ?? []),
  );
  const read = (version: AgentVersionRecord): RunnableAgent => {
    const definition = parseJson(version.definition) as Definition;
    return {
      name: version.agent,
      ...Object.fromEntries(included.map((field) => [field, INCLUDABLE[field](definition, version)])),
    };
  };
  return {
    agents: await Promise.all(versions.map((version) => deps.schedule(organizationId, () => read(version)))),
  };
}

/** @param include names with commas between them */
function fieldsOf(include: string | undefined): (keyof typeof INCLUDABLE)[] {
  const names = include?.split(',') ?? [];
  if (!names.every(isIncludable) || new Set(names).size < names.length)
    throw invalid(
      '/include',
      `include must be a comma-separated list of ${Object.keys(INCLUDABLE).join(', ')}, each at most once`,
    );
  return names;
}
