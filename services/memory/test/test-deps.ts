import type { CallContext } from 'platform/rpc/call.ts';
import { systemClock } from 'platform/core/clock.ts';
import { readConfig } from 'platform/core/config.ts';
import { OUTBOX } from 'platform/events/outbox.ts';
import { newId } from 'platform/core/ids.ts';
import { makeLog } from 'platform/core/log.ts';
import type { Principal } from 'platform/core/principal.ts';
import { LEASES } from 'platform/jobs/lease.ts';
import type { Collection, OpenStore } from 'platform/store/store.ts';
import type { openSqliteStore } from 'platform/store/sqlite/store.ts';
import { openTestStore } from '../../../test/support/shared-engines.ts';
import { config } from '../src/config.ts';
import { openDeps, type Deps } from '../src/deps.ts';

/** Opens the dependencies of the handlers on a real store, for tests that call handlers or read the store itself. */
export async function openTestDeps(
  file: string,
  shardCount: number,
  open: typeof openSqliteStore = openTestStore,
): Promise<{ deps: Deps; opened: OpenStore }> {
  let opened: OpenStore;
  const deps = await openDeps({
    config: { ...readConfig(config, {}), LEASE_MS: 120_000 },
    clock: systemClock,
    log: makeLog('memory', 'silent'),
    instanceId: newId(),
    openStore: async (collections: readonly Collection<never>[]) => {
      opened = await open(file, [...collections, OUTBOX, LEASES]);
      return { ...opened, counterShards: shardCount };
    },
  } as unknown as Parameters<typeof openDeps>[0]);
  return { deps, opened: opened! };
}

/** The context of one call of a handler. */
export const contextOf = (principal: Principal): CallContext => ({
  principal,
  caller: 'gateway',
  requestId: newId(),
  signal: new AbortController().signal,
  deadline: Date.now() + 60_000,
});
