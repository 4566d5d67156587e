import { DAY_MS } from 'platform/core/clock.ts';
import type { Clock } from 'platform/core/clock.ts';
import type { Log } from 'platform/core/log.ts';
import { MAX_AHEAD_MS } from '../arguments.ts';
import { ITSELF, type Author } from '../ledger.ts';
import type { ChainedRow, Mirror } from './mirror.ts';
import type { Ended, RebuiltPresent } from './rebuild.ts';
import { UnansweredError, type Attempt, type RedisConnection } from './connection.ts';
import { keysOf, type LedgerKeys } from './keys.ts';
import { verification, type Present } from './verification.ts';

/** A command of ledger.lua; `key` says what its id names. */
interface Command {
  command: string;
  key?: 'reservation' | 'grant';
  id?: string;
  [argument: string]: unknown;
}

interface Options {
  keyPrefix: string;
  retentionMs: number;
  clock?: Clock;
  log: Log;
}

/** Members of a row's JSON. */
export const authorText = ({ actor, requestId }: Author, note = ''): string =>
  JSON.stringify({ actor, requestId, note }).slice(1, -1);

/** Single steps on Redis, in the ledger's words; each is repeated until it is answered or its time is over. */
export function redisSteps(
  connection: RedisConnection,
  mirror: Mirror,
  { keyPrefix, retentionMs, clock, log }: Options,
) {
  const itself = authorText(ITSELF);
  // An id may be a day ahead when it ends; a day more, since clocks differ.
  const keepMs = retentionMs + MAX_AHEAD_MS + DAY_MS;

  const keysFor = (keys: LedgerKeys, { key, id }: Command): string[] =>
    key === undefined ? [...keys.all] : [...keys.all, keys[key](id as string)];
  const argumentOf = (organization: string, { key: _, ...command }: Command): string =>
    JSON.stringify({
      ...command,
      organization,
      nowMs: clock?.now(),
      retentionMs,
      maxAheadMs: MAX_AHEAD_MS,
      keepMs,
      itself,
    });

  /** Outside of verification: for what finds out about the data, or replaces it. */
  const unverified = (organizationId: string, command: Command, attempt?: Attempt): Promise<string[]> =>
    connection.evaluate(keysFor(keysOf(keyPrefix, organizationId), command), argumentOf(organizationId, command), {
      attempt,
    });

  async function inspect(organizationId: string, sequences: readonly number[]): Promise<Present> {
    const [generation, newest, hash, nowMs, ...rowHashes] = (await unverified(organizationId, {
      command: 'inspect',
      sequences,
    })) as [string, string, string, string, ...string[]];
    return { generation, sequence: Number(newest), hash, rowHashes, nowMs: Number(nowMs) };
  }
  async function fenceLost(organizationId: string, generation: string): Promise<void> {
    await unverified(organizationId, { command: 'fence', fence: `lost ${generation}`, generation });
  }
  const organizations = verification({ connection, mirror, inspect, fence: fenceLost, log });

  /** Sends it once, to what was verified on the connection of this epoch. */
  async function step(
    organizationId: string,
    command: Command,
    attempt: Attempt,
    changes: boolean,
  ): Promise<{ epoch: number; answer: string[] }> {
    const { epoch, generation, floor } = await organizations.verified(organizationId);
    const argument = argumentOf(organizationId, { ...command, generation, floor });
    const { unheard } = attempt;
    const [status, sequence, hash, ...answer] = await connection.evaluate(
      keysFor(keysOf(keyPrefix, organizationId), command),
      argument,
      { epoch, attempt: changes ? attempt : undefined },
    );
    if (status === 'REGRESSED') {
      organizations.doubt(organizationId);
      // this send did nothing; an earlier one may have
      attempt.unheard = unheard;
      throw new UnansweredError('the ledger is not where it was');
    }
    organizations.saw(organizationId, { generation, sequence: Number(sequence), hash: hash as string });
    return { epoch, answer };
  }
  const perform = (organizationId: string, command: Command, changes: boolean): Promise<string[]> =>
    connection.attempt(async (attempt) => (await step(organizationId, command, attempt, changes)).answer);

  const behindFence = async (organizationId: string, command: Command): Promise<boolean> =>
    (await connection.attempt((attempt) => unverified(organizationId, command, attempt)))[0] === 'DONE';

  const rangeOf = async (
    command: 'XRANGE' | 'XREVRANGE',
    organizationId: string,
    from: string,
    to: string,
    limit: number,
  ): Promise<ChainedRow[]> => {
    const entries = await connection.command<[id: string, fields: [string, string, string, string]][]>(
      command,
      keysOf(keyPrefix, organizationId).rows,
      from,
      to,
      'COUNT',
      limit,
    );
    return entries.map(([id, [, row, , hash]]) => ({ sequence: Number(id.slice(0, id.indexOf('-'))), row, hash }));
  };

  return {
    change: (organizationId: string, command: Command) => perform(organizationId, command, true),
    read: (organizationId: string, command: Command) => perform(organizationId, command, false),
    doubt: organizations.doubt,
    rowsFrom: (organizationId: string, sequence: number, limit: number) =>
      connection.attempt(() => rangeOf('XRANGE', organizationId, `${sequence}-0`, '+', limit)),
    /** Rows below `before`, newest first. */
    rowsBefore: (organizationId: string, before: number, limit: number): Promise<ChainedRow[]> =>
      connection.attempt(async (attempt) => {
        // a script, since it meets the fence that another replica may have put up
        const { epoch } = await step(organizationId, { command: 'balance' }, attempt, false);
        const rows = before <= 1 ? [] : await rangeOf('XREVRANGE', organizationId, `${before - 1}-0`, '-', limit);
        if (connection.epoch() !== epoch) throw new UnansweredError('another connection');
        return rows;
      }),
    async mirrored(organizationId: string, generation: string, sequence: number, keepFrom: number): Promise<void> {
      await connection.attempt(() =>
        unverified(organizationId, { command: 'mirrored', generation, floor: sequence, sequence, keepFrom }),
      );
    },
    async nowMs(): Promise<number> {
      if (clock) return clock.now();
      const [seconds, micros] = await connection.attempt(() => connection.command<string[]>('TIME'));
      return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
    },
    async fence(organizationId: string, fence: string): Promise<Present> {
      await connection.attempt(() => unverified(organizationId, { command: 'fence', fence }));
      return connection.attempt(() => inspect(organizationId, []));
    },
    restore: (organizationId: string, fence: string, generation: string, ended: Ended) =>
      behindFence(organizationId, { command: 'restore', fence, generation, ...ended }),
    replace: (organizationId: string, fence: string, generation: string, present: RebuiltPresent) =>
      behindFence(organizationId, { command: 'replace', fence, generation, grants: [], ...present }),
  };
}
