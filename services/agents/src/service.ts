import { relayJob } from 'platform/events/relay.ts';
import { flushDenials, denialsJob } from 'platform/events/denials-job.ts';
import type { Program } from 'platform/service/run.ts';
import { served } from 'platform/rpc/server.ts';
import { AgentsServiceService } from 'proto/agents/v1/agents.ts';
import { config } from './config.ts';
import { applyAgent } from './definitions/apply-agent.ts';
import { listAgentVersions } from './definitions/list-agent-versions.ts';
import { listAgents } from './definitions/list-agents.ts';
import { listRunnableAgents } from './definitions/list-runnable-agents.ts';
import { publishAgent } from './definitions/publish-agent.ts';
import { retireAgent } from './definitions/retire-agent.ts';
import { openDeps, type Deps } from './deps.ts';
import { getAgentExecution } from './executions/get-agent-execution.ts';
import { listAgentExecutions } from './executions/list-agent-executions.ts';
import { runAgent } from './executions/run-agent.ts';
import { reaperJob } from './jobs/reaper.ts';
import { retentionJob } from './jobs/retention.ts';

/** Denials counted in memory, on their way to the audit trail. */
const refusalsOf = ({ denials, platformStore }: Deps) => ({ denials, platformStore, source: '/agents' });

export const program: Program<typeof config, Deps> = {
  name: 'agents',
  config,
  calls: ['credits'],
  openDeps,
  services: (deps) => [
    served(AgentsServiceService, {
      listRunnableAgents: (request, context) => listRunnableAgents(deps, request, context),
      runAgent: (request, context) => runAgent(deps, request, context),
      listAgentExecutions: (request, context) => listAgentExecutions(deps, request, context),
      getAgentExecution: (request, context) => getAgentExecution(deps, request, context),
      applyAgent: (request, context) => applyAgent(deps, request, context),
      publishAgent: (request, context) => publishAgent(deps, request, context),
      retireAgent: (request, context) => retireAgent(deps, request, context),
      listAgents: (request, context) => listAgents(deps, request, context),
      listAgentVersions: (request, context) => listAgentVersions(deps, request, context),
    }),
  ],
  jobs: (deps) => [
    relayJob({ ...deps, intervalMs: deps.config.RELAY_INTERVAL_MS }),
    reaperJob(deps),
    retentionJob(deps),
    denialsJob({ ...refusalsOf(deps), intervalMs: deps.config.REFUSALS_INTERVAL_MS }),
  ],
  // Running evaluations end as interrupted, cost nothing and are answered while the server drains.
  interrupt: ({ runners }) => runners.stop(),
  async close(deps) {
    deps.releases.stop();
    await flushDenials(refusalsOf(deps));
  },
};
