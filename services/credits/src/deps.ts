import { DAY_MS } from 'platform/core/clock.ts';
import type { EventBus } from 'platform/events/bus.ts';
import type { ServiceConfig, Start } from 'platform/service/program.ts';
import { inSpan, isTracing } from 'platform/telemetry/traces.ts';
import { StartError } from 'platform/core/start-error.ts';
import { lockFile } from 'platform/store/sqlite/file-lock.ts';
import type { Config } from './config.ts';
import { claimLocation, LEDGER_LOCATION } from './ledger/location.ts';
import { countReservations, readLedger } from './ledger/metrics.ts';
import type { Ledger, Mirroring, OpenLedger, PlatformLedger } from './ledger/ledger.ts';
import { openSqliteLedger } from './ledger/sqlite/ledger.ts';

export interface Deps {
  ledger: Ledger;
  platformLedger: PlatformLedger;
  mirroring?: Mirroring;
  bus: EventBus;
  config: Config & Pick<ServiceConfig, 'RELAY_INTERVAL_MS'>;
  closeLedger: OpenLedger['close'];
}

/** @throws StartError */
export async function openDeps(start: Start<Config>): Promise<Deps> {
  const { mirroring, close: closeLedger, ledger: opened, platformLedger } = await openLedger(start);
  const ledger = countReservations(start.metrics, opened);
  readLedger(start.metrics, { ledger, platformLedger }, start.config.REDIS_URL === '' ? 'SQLite' : 'Redis');
  return {
    // Rows that must be mirrored first are relayed at the interval.
    ledger: traced(mirroring ? ledger : notifying(ledger, start.relaySoon), start.config),
    platformLedger,
    mirroring,
    bus: await start.openBus(),
    config: start.config,
    closeLedger,
  };
}

/** The ledger, with a span around each call of a traced request: what is done, never an amount. */
function traced(ledger: Ledger, { REDIS_URL }: Pick<Config, 'REDIS_URL'>): Ledger {
  if (!isTracing()) return ledger;
  const system = REDIS_URL === '' ? 'sqlite' : 'redis';
  type Call = (...given: unknown[]) => Promise<unknown>;
  const calls = Object.entries(ledger as unknown as Record<string, Call>).map(([name, call]): [string, Call] => {
    const attributes = () => ({ 'db.system.name': system, 'db.operation.name': name, 'db.collection.name': 'ledger' });
    return [name, (...given) => inSpan('client', `${name} ledger`, attributes, () => call(...given))];
  });
  return Object.fromEntries(calls) as unknown as Ledger;
}

/** The ledger, which calls `notify` after each call that may have added rows. */
const notifying = (ledger: Ledger, notify: () => void): Ledger => ({
  ...ledger,
  grant: (...call) => ledger.grant(...call).finally(notify),
  reserve: (...call) => ledger.reserve(...call).finally(notify),
  extend: (...call) => ledger.extend(...call).finally(notify),
  settle: (...call) => ledger.settle(...call).finally(notify),
  release: (...call) => ledger.release(...call).finally(notify),
  expire: (...call) => ledger.expire(...call).finally(notify),
});

async function openLedger({ config, clock, log, openStore, storeFile }: Start<Config>): Promise<OpenLedger> {
  const retentionMs = config.RETENTION_DAYS * DAY_MS;
  if (config.REDIS_URL !== '') {
    if (config.MONGODB_URL === '') throw new StartError('REDIS_URL needs MONGODB_URL: the rows of the ledger go there');
    const { LEDGER_ACCOUNTS, LEDGER_ROWS } = await import('./ledger/redis/mirror.ts');
    const { store, platformStore } = await openStore([LEDGER_ROWS, LEDGER_ACCOUNTS, LEDGER_LOCATION]);
    const { openRedisLedger } = await import('./ledger/redis/ledger.ts');
    const { REDIS_URL: url, REDIS_KEY_PREFIX: keyPrefix, REDIS_TIMEOUT_MS: timeoutMs, REDIS_UNSAFE: unsafe } = config;
    const opened = await openRedisLedger({ url, keyPrefix, timeoutMs, unsafe, retentionMs, store, platformStore, log });
    return withLocation(opened, { platformStore });
  }
  if (config.MONGODB_URL === '') {
    // The store holds the jobs' leases; the ledger's tables are in the same file.
    await openStore([]);
    return openSqliteLedger(storeFile, { clock, retentionMs });
  }
  const { platformStore } = await openStore([LEDGER_LOCATION]);
  const lock = lockFile(storeFile);
  const { fileId: id, ...opened } = await openSqliteLedger(storeFile, { clock, retentionMs });
  const locked = { ...opened, close: () => opened.close().finally(lock.release) };
  return withLocation(locked, { platformStore, file: { id, path: storeFile } });
}

/** The opened ledger, after its location is claimed. @throws StartError when the ledger is kept elsewhere */
async function withLocation(opened: OpenLedger, claim: Parameters<typeof claimLocation>[0]): Promise<OpenLedger> {
  try {
    await claimLocation(claim);
    return opened;
  } catch (error) {
    await opened.close();
    throw error;
  }
}
