import { systemClock } from 'platform/core/clock.ts';
import { masterKeysOf } from 'platform/jobs/reseal.ts';
import { masterKeyCheck } from 'platform/service/master-key-check.ts';
import type { Program } from 'platform/service/program.ts';
import { bind } from 'platform/rpc/call.ts';
import { AgentsServiceService } from 'proto/agents/v1/agents.ts';
import { useCallbackToken } from './callback-tokens/use-callback-token.ts';
import { config } from './config.ts';
import { applyAgent } from './definitions/apply-agent.ts';
import { getAgentVersion } from './definitions/get-agent-version.ts';
import { listAgentVersions } from './definitions/list-agent-versions.ts';
import { listAgents } from './definitions/list-agents.ts';
import { listRunnableAgents } from './definitions/list-runnable-agents.ts';
import { publishAgent } from './definitions/publish-agent.ts';
import { retireAgent } from './definitions/retire-agent.ts';
import { COLLECTIONS, openDeps, type Deps } from './deps.ts';
import { cancelAgentExecution } from './executions/cancel-agent-execution.ts';
import { getAgentExecution } from './executions/get-agent-execution.ts';
import { RUN_METRICS } from './executions/metrics.ts';
import { listAgentExecutions } from './executions/list-agent-executions.ts';
import { runAgent } from './executions/run-agent.ts';
import { executionBytesJob } from './jobs/count-bytes.ts';
import { reaperJob } from './jobs/reaper.ts';
import { resealSecretsJob, sealedSecrets } from './jobs/reseal.ts';
import { retentionJob } from './jobs/retention.ts';
import { deleteSecret } from './secrets/delete-secret.ts';
import { listSecrets } from './secrets/list-secrets.ts';
import { setSecret } from './secrets/set-secret.ts';
import { markSettled, settledJob } from './jobs/settled.ts';

export const program: Program<typeof config, Deps> = {
  name: 'agents',
  config,
  calls: ['credits', 'memory', 'auth'],
  publishes: ['agent.execution.v1', 'audit.v1'],
  metrics: RUN_METRICS,
  openDeps,
  services: (deps) => [
    bind(AgentsServiceService, deps, {
      listRunnableAgents,
      runAgent,
      listAgentExecutions,
      getAgentExecution,
      cancelAgentExecution,
      applyAgent,
      publishAgent,
      retireAgent,
      listAgents,
      listAgentVersions,
      getAgentVersion,
      setSecret,
      listSecrets,
      deleteSecret,
      useCallbackToken,
    }),
  ],
  jobs: (deps) => [
    reaperJob(deps),
    settledJob(deps),
    retentionJob(deps),
    executionBytesJob(deps),
    resealSecretsJob(deps),
  ],
  checks: (deps) => [masterKeyCheck(deps.sealing, sealedSecrets(deps))],
  copy: {
    collections: COLLECTIONS,
    masterKeys: ({ platformStore }) => masterKeysOf(sealedSecrets({ platformStore, clock: systemClock })),
  },
  // Interrupts the runs that have not ended by themselves: they are not charged, and their replies are sent.
  interrupt: ({ runtimes }) => runtimes.stop(),
  async close(deps) {
    deps.sealing.close();
    deps.releases.stop();
    await markSettled(deps).catch((error: unknown) =>
      deps.log.warn({ error }, 'could not mark runs as settled; the reaper will settle them again'),
    );
    await deps.counterShards
      .close()
      .catch((error: unknown) => deps.log.warn({ error }, 'could not release the slot of counter shards'));
  },
};
