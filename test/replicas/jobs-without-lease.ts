import type { ServiceDefinition } from 'platform/rpc/call.ts';
import { systemClock } from 'platform/core/clock.ts';
import { clientOf, openConnection, type Connection } from 'platform/rpc/client.ts';
import { readConfig, type ConfigOf, type Declaration } from 'platform/core/config.ts';
import { openBusEngine, openStoreEngine, type EngineConfig } from 'platform/service/backends.ts';
import { makeDenials } from 'platform/events/denials.ts';
import { OUTBOX } from 'platform/events/outbox.ts';
import { relayJob } from 'platform/events/relay.ts';
import { openIdentity } from 'platform/rpc/identity.ts';
import { newId } from 'platform/core/ids.ts';
import type { Job } from 'platform/jobs/jobs.ts';
import { identityFilesOf, keyFolderOf } from 'platform/rpc/keys.ts';
import { LEASES } from 'platform/jobs/lease.ts';
import { makeLog } from 'platform/core/log.ts';
import { settingOf, type ProcessName } from 'platform/core/processes.ts';
import { declarationOf, type Program, type Start } from 'platform/service/program.ts';
import { NO_METRICS } from 'platform/telemetry/metrics.ts';
import type { Collection, OpenStore, PlatformStore } from 'platform/store/store.ts';
import type { Stack } from '../support/stack.ts';

/** The jobs of one more replica of a service on the data of a stack, which run without a lease. */
export interface JobsWithoutLease {
  /** Runs a round, whatever other replicas do; resolves to the number of items done. */
  run(job: string): Promise<number>;
  /** What the store of the stack has, also while its processes are paused. */
  readonly platformStore: PlatformStore;
  close(): Promise<void>;
}

export async function openJobsWithoutLease<D extends Declaration, Deps>(
  program: Program<D, Deps>,
  stack: Stack,
): Promise<JobsWithoutLease> {
  const { name } = program;
  const config = readConfig(declarationOf(program), stack.env) as unknown as Start<ConfigOf<D>>['config'] &
    EngineConfig;
  const log = makeLog(name, 'silent');
  const keys = keyFolderOf(stack.folder);
  const identity = openIdentity({ name, ...identityFilesOf(keys, name) });
  const opening = { settings: config, service: name, log };
  const connections: Connection[] = [];
  let store: OpenStore | undefined;
  const bus = await openBusEngine(opening, '', program.publishes);
  const deps = await program.openDeps({
    config,
    log,
    clock: systemClock,
    instanceId: newId(),
    storeFile: '',
    async openStore(collections: readonly Collection<never>[]) {
      store = await openStoreEngine(opening, '', [...collections, OUTBOX, LEASES]);
      // without a lease of a slot there is only one counter shard
      return { ...store, counterShards: 1 };
    },
    openBus: async () => bus,
    denials: makeDenials(),
    metrics: NO_METRICS,
    relaySoon: () => undefined,
    connect<C extends ServiceDefinition>(definition: C, audience: ProcessName) {
      const connection = openConnection({
        address: stack.env[settingOf(audience, 'ADDRESS')] as string,
        audience,
        identity,
      });
      connections.push(connection);
      return clientOf(definition, connection.call);
    },
  });
  const { platformStore } = store!;
  const relay = program.outbox === 'own' ? [] : [relayJob({ platformStore, bus, log, intervalMs: 1_000 })];
  const jobs: readonly Job[] = [...program.jobs(deps), ...relay];
  return {
    platformStore,
    async run(wanted) {
      const job = jobs.find((each) => each.name === wanted);
      if (!job) throw new Error(`${name} has no job ${wanted}`);
      return job.run(new AbortController().signal);
    },
    async close() {
      await program.interrupt?.(deps);
      await program.close?.(deps);
      for (const connection of connections) connection.close();
      await bus.close();
      await store?.close();
    },
  };
}
