import { join } from 'node:path';
import { DAY_MS, systemClock } from 'platform/core/clock.ts';
import { readConfig } from 'platform/core/config.ts';
import { newId } from 'platform/core/ids.ts';
import { makeLog } from 'platform/core/log.ts';
import { LEASES } from 'platform/jobs/lease.ts';
import { openCounterShards } from 'platform/jobs/counter-shards.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import { insert } from 'platform/store/store.ts';
import { explain, recordStatements } from '../../../test/support/query-plans.ts';
import { config as declaration } from '../src/config.ts';
import { openCallbackTokens } from '../src/callback-tokens/store.ts';
import { openDefinitions } from '../src/definitions/store.ts';
import { COLLECTIONS, type Deps } from '../src/deps.ts';
import { makeSettledRuns } from '../src/executions/settled-runs.ts';
import { openExecutions, RUN_KEYS } from '../src/executions/store.ts';
import { executionBytesJob } from '../src/jobs/count-bytes.ts';
import { reaperJob } from '../src/jobs/reaper.ts';
import { resealSecretsJob } from '../src/jobs/reseal.ts';
import { retentionJob } from '../src/jobs/retention.ts';
import { settledJob } from '../src/jobs/settled.ts';
import { openSecrets } from '../src/secrets/store.ts';
import { openUsage } from '../src/usage/store.ts';
import { NO_SEALING } from './no-sealing.ts';

const never = new AbortController().signal;
const log = makeLog('agents', 'silent');

async function openAgentsStore(file: string) {
  const opened = await openSqliteStore(file, [...COLLECTIONS, LEASES]);
  const counterShards = await openCounterShards(opened, { owner: newId(), leaseMs: 60_000, log });
  const usage = openUsage(opened.store, counterShards);
  const executions = openExecutions(opened.store, usage, async () => Date.now());
  const config = readConfig(declaration, {});
  const close = async (): Promise<void> => {
    await counterShards.close();
    await opened.close();
  };
  return {
    ...opened,
    usage,
    executions,
    settledRuns: makeSettledRuns(),
    clock: systemClock,
    config,
    sealing: NO_SEALING,
    log,
    close,
  };
}

describe('on SQLite', () => {
  const folder = temporaryFolder();
  afterAll(() => folder.remove());

  it('every statement goes by an index that has its order, and every index serves a statement', async () => {
    const file = join(folder.path, 'agents.db');
    const recorded = recordStatements();
    const deps = await openAgentsStore(file);
    const organizationId = newId();
    const definitions = openDefinitions(deps.store);
    await definitions.byName(organizationId, 'a');
    await definitions.list(organizationId);
    await definitions.listRunnable(organizationId);
    await definitions.versionByNumber(organizationId, 'a', 1);
    await definitions.listVersions(organizationId, 'a', 10);
    const secrets = openSecrets(deps.store, NO_SEALING);
    await secrets.values(organizationId, 'a', '');
    await secrets.list(organizationId);
    await openCallbackTokens(deps.store, deps.platformStore, systemClock).byHash('a');
    await deps.executions.byId(organizationId, newId());
    await deps.executions.payloadById(organizationId, newId());
    await deps.executions.runKeyByKey(organizationId, 'key');
    for (const filter of [{}, { agent: 'a' }, { status: 'failed' }, { agent: 'a', status: 'failed' }] as const)
      for (const page of [{ limit: 21 }, { limit: 21, before: newId() }])
        await deps.executions.list(organizationId, filter, page);
    await deps.usage.storedBytes(organizationId);
    deps.settledRuns.note({ _id: newId(), organizationId });
    for (const makeJob of [settledJob, reaperJob, retentionJob, executionBytesJob, resealSecretsJob])
      await makeJob(deps as unknown as Deps).run(never);
    recorded.stop();
    const { costly, unusedIndexes } = explain(file, recorded.sql);
    expect(costly).toEqual([]);
    expect(unusedIndexes).toEqual([]);
    await deps.close();
  });

  it('retention reads what it removes and nothing else, however many documents there are', async () => {
    const deps = await openAgentsStore(join(folder.path, 'retention.db'));
    const organizationId = newId();
    const now = Date.now();
    await deps.store.apply(
      organizationId,
      Array.from({ length: 2_000 }, (_, n) =>
        insert(RUN_KEYS, {
          _id: newId(n % 4 === 0 ? now - 400 * DAY_MS : now),
          organizationId,
          key: `k${n}`,
          requestHash: '',
          executionId: newId(),
          createdAt: new Date(now).toISOString(),
        }),
      ),
    );
    const found: number[] = [];
    const platformStore: typeof deps.platformStore = {
      ...deps.platformStore,
      find: async (...given) => {
        const documents = await deps.platformStore.find(...given);
        found.push(documents.length);
        return documents;
      },
    };
    expect(await retentionJob({ ...deps, platformStore }).run(never)).toBe(500);
    expect(found).toEqual([200, 200, 100, 0, 0, 0, 0]);
    expect(await deps.store.count(organizationId, RUN_KEYS, {})).toBe(1_500);
    await deps.close();
  });
});
