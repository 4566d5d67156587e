import type { Clock } from 'platform/core/clock.ts';
import { timeOfId } from 'platform/core/ids.ts';
import type { PlatformStore, Store } from 'platform/store/store.ts';
import { checkExtend, checkGrant, checkPage, checkRelease, checkReserve, checkSettle } from '../arguments.ts';
import {
  EXPIRIES_PER_RESERVE,
  type ExtendResult,
  type GrantResult,
  type Ledger,
  type LedgerRow,
  type OpenLedger,
  type ReleaseResult,
  type ReserveResult,
  type SettleResult,
} from '../ledger.ts';
import { LostLedgerError, MIRROR_BATCH, mirrorRows, openMirror, rowOf } from './mirror.ts';
import { rebuildLedger } from './rebuild.ts';
import { openRedisConnection, type RedisOptions } from './connection.ts';
import { bucketsOf } from './keys.ts';
import { authorText, ledgerCommands } from './commands.ts';
import type { Account, ReservationState } from '../rules.ts';

export interface RedisLedgerOptions extends RedisOptions {
  retentionMs: number;
  /** Where the rows are mirrored. */
  store: Store;
  platformStore: PlatformStore;
  /** For tests: replaces Redis's own time. */
  clock?: Clock;
}

/**
 * The ledger on Redis: each operation is one call of ledger.lua. Redis holds accounts, reservations and the newest
 * rows; the document store mirrors all rows. Where Redis does not continue the mirror, the organization's calls are
 * rejected until a rebuild.
 * @throws StartError
 */
export async function openRedisLedger(options: RedisLedgerOptions): Promise<OpenLedger> {
  const { keyPrefix, retentionMs, store, platformStore, log } = options;
  const connection = await openRedisConnection(options);
  const mirror = openMirror(store, platformStore);
  const commands = ledgerCommands(connection, mirror, options);
  const buckets = bucketsOf(keyPrefix);
  const mirrorBatch = (organizationId: string): Promise<number> => mirrorRows({ mirror, ...commands }, organizationId);

  /**
   * For jobs, which process all organizations: a lost ledger must not keep them from the organizations after it. After
   * a fork was found while mirroring, a new verification informs the other replicas, whose connections may be intact.
   */
  async function unlessLost<T>(organizationId: string, work: () => Promise<T>, otherwise: T): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof LostLedgerError)) throw error;
      commands.invalidate(organizationId);
      const found = await commands.read(organizationId, { command: 'balance' }).then(
        () => undefined,
        (reason: unknown) => reason,
      );
      if (found && !(found instanceof LostLedgerError)) throw found;
      if (!found) log.error({ organizationId, error: String(error.cause) }, error.message);
      return otherwise;
    }
  }

  const ledger: Ledger = {
    async grant(organizationId, grant, author) {
      checkGrant(grant);
      const { id, amountMicros, note } = grant;
      const [outcome, ...fields] = await commands.change(organizationId, {
        command: 'grant',
        ...onGrant(id),
        amount: amountMicros,
        author: authorText(author, note),
      });
      return (outcome === 'GRANTED' ? { outcome, account: accountOf(fields) } : { outcome }) as GrantResult;
    },

    async reserve(organizationId, request, author) {
      checkReserve(request);
      const { id, amountMicros, ttlMs, maxOpen } = request;
      const command = {
        command: 'reserve',
        ...onReservation(id),
        amount: amountMicros,
        ttlMs,
        maxOpen,
        expiries: EXPIRIES_PER_RESERVE,
        author: authorText(author),
      };
      const [outcome, state, available] = await commands.change(organizationId, command);
      if (available === undefined) return { outcome } as ReserveResult;
      return { outcome, ...(state && { state }), availableMicros: Number(available) } as ReserveResult;
    },

    async extend(organizationId, id, ttlMs) {
      checkExtend(id, ttlMs);
      return stateResult(
        await commands.change(organizationId, { command: 'extend', ...onReservation(id), ttlMs }),
      ) as ExtendResult;
    },

    async settle(organizationId, id, chargeMicros, author) {
      checkSettle(id, chargeMicros);
      const [outcome, state, charged, shortfall] = await commands.change(organizationId, {
        command: 'settle',
        ...onReservation(id),
        amount: chargeMicros,
        author: authorText(author),
      });
      if (outcome !== 'FOUND') return { outcome } as SettleResult;
      return {
        outcome,
        state: state as ReservationState,
        chargedMicros: Number(charged),
        shortfallMicros: Number(shortfall),
      };
    },

    async release(organizationId, id, author) {
      checkRelease(id);
      return stateResult(
        await commands.change(organizationId, { command: 'release', ...onReservation(id), author: authorText(author) }),
      ) as ReleaseResult;
    },

    expire: (organizationId, limit) =>
      unlessLost(
        organizationId,
        async () => Number((await commands.change(organizationId, { command: 'expire', limit }))[0]),
        0,
      ),

    balance: async (organizationId) => accountOf(await commands.read(organizationId, { command: 'balance' })),

    async rows(organizationId, before, limit) {
      checkPage(before, limit);
      const newest = (await commands.rowsBefore(organizationId, before || Number.MAX_SAFE_INTEGER, limit)).map(rowOf);
      const lowest = newest.at(-1)?.sequence ?? (before || Number.MAX_SAFE_INTEGER);
      if (newest.length === limit || lowest === 1) return newest;
      return [...newest, ...(await mirror.before(organizationId, lowest, limit - newest.length))];
    },

    async unrelayed(organizationId, limit): Promise<LedgerRow[]> {
      await unlessLost(organizationId, () => mirrorBatch(organizationId), 0);
      return mirror.unrelayed(organizationId, limit);
    },

    acknowledge: mirror.acknowledge,

    rebuild: (organizationId) => rebuildLedger({ mirror, retentionMs, mirrorBatch, ...commands }, organizationId),
  };

  /** Those of all buckets that are due until then. It costs as much as there is work, however many there are. */
  const dueUntil = async (ms: number): Promise<string[]> =>
    (
      await connection.sendUntilAnswered(() =>
        Promise.all(buckets.map(({ due }) => connection.command<string[]>('ZRANGEBYSCORE', due, '-inf', ms))),
      )
    ).flat();
  const page = (organizations: Iterable<string>, after: string, limit: number): string[] =>
    [...organizations]
      .filter((one) => one > after)
      .sort()
      .slice(0, limit);
  /** One command, because two jobs ask for it every second. */
  const unmirrored = (): Promise<string[]> =>
    connection.sendUntilAnswered(() => connection.command('SUNION', ...buckets.map((bucket) => bucket.unmirrored)));

  return {
    ledger,
    platformLedger: {
      async organizationsDue(after, limit) {
        return page(await dueUntil(await commands.nowMs()), after, limit);
      },
      async organizationsExpiring(beforeMs, after, limit) {
        return page(await dueUntil(beforeMs - 1), after, limit);
      },
      async organizationsUnrelayed(after, limit) {
        const [inRedis, inMirror] = await Promise.all([unmirrored(), mirror.organizationsUnrelayed(after, limit)]);
        return page(new Set([...inRedis, ...inMirror]), after, limit);
      },
      // The keys of ended reservations expire in Redis.
      deleteEnded: async () => 0,
    },
    mirroring: {
      organizationsUnmirrored: async (after, limit) => page(await unmirrored(), after, limit),
      mirror: (organizationId) =>
        unlessLost(organizationId, async () => (await mirrorBatch(organizationId)) === MIRROR_BATCH, false),
    },
    async close() {
      connection.close();
    },
  };
}

const onReservation = (id: string) => ({ key: 'reservation' as const, id, madeMs: timeOfId(id) });
const onGrant = (id: string) => ({ key: 'grant' as const, id, madeMs: timeOfId(id) });

const stateResult = ([outcome, state]: string[]) => (outcome === 'FOUND' ? { outcome, state } : { outcome });

function accountOf(fields: string[]): Account {
  const [availableMicros, reservedMicros, spentMicros, grantedMicros, openReservations, sequence] = fields.map(
    Number,
  ) as [number, number, number, number, number, number];
  return { availableMicros, reservedMicros, spentMicros, grantedMicros, openReservations, sequence };
}
