import { DAY_MS, type Clock } from 'platform/core/clock.ts';
import type { Log } from 'platform/core/log.ts';
import { MAX_AHEAD_MS } from '../arguments.ts';
import { SERVICE_AUTHOR, type Author } from '../ledger.ts';
import type { ChainedRow, Mirror } from './mirror.ts';
import type { RebuiltPast, RebuiltPresent } from './rebuild.ts';
import { UnansweredError, type Attempt, type RedisConnection } from './connection.ts';
import { keysOf, type LedgerKeys } from './keys.ts';
import { ledgerVerifier, type Inspection } from './verifier.ts';

/** A command of ledger.lua. `key`: whether its id is that of a reservation or of a grant. */
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

/** The members `actor`, `requestId` and `note` of a row's JSON, without the braces around them. */
export const authorText = ({ actor, requestId }: Author, note = ''): string =>
  JSON.stringify({ actor, requestId, note }).slice(1, -1);

/** Sends commands of ledger.lua. Each is repeated until it is answered or times out. */
export function ledgerCommands(
  connection: RedisConnection,
  mirror: Mirror,
  { keyPrefix, retentionMs, clock, log }: Options,
) {
  const itself = authorText(SERVICE_AUTHOR);
  // How long keys of ended reservations and of grants stay: an id's time may be MAX_AHEAD_MS ahead of the clock, and
  // one more day allows for clocks that differ.
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

  /** Sends a command without verification: for commands that inspect the data or replace it. */
  const unverified = (organizationId: string, command: Command, attempt?: Attempt): Promise<string[]> =>
    connection.runScript(keysFor(keysOf(keyPrefix, organizationId), command), argumentOf(organizationId, command), {
      attempt,
    });

  async function inspect(organizationId: string, sequences: readonly number[]): Promise<Inspection> {
    const [generation, newest, hash, nowMs, ...rowHashes] = (await unverified(organizationId, {
      command: 'inspect',
      sequences,
    })) as [string, string, string, string, ...string[]];
    return { generation, sequence: Number(newest), hash, rowHashes, nowMs: Number(nowMs) };
  }
  async function fenceLost(organizationId: string, generation: string): Promise<void> {
    await unverified(organizationId, { command: 'fence', fence: `lost ${generation}`, generation });
  }
  const verifier = ledgerVerifier({ connection, mirror, inspect, fence: fenceLost, log });

  /** Sends a command once, on the connection on which the ledger was verified. `changes`: it may change something. */
  async function sendVerified(
    organizationId: string,
    command: Command,
    attempt: Attempt,
    changes: boolean,
  ): Promise<{ epoch: number; answer: string[] }> {
    const { epoch, generation, floor } = await verifier.verified(organizationId);
    const argument = argumentOf(organizationId, { ...command, generation, floor });
    const { unanswered } = attempt;
    const [status, sequence, hash, ...answer] = await connection.runScript(
      keysFor(keysOf(keyPrefix, organizationId), command),
      argument,
      { epoch, attempt: changes ? attempt : undefined },
    );
    if (status === 'REGRESSED') {
      verifier.invalidate(organizationId);
      // this send changed nothing, but an earlier one may have
      attempt.unanswered = unanswered;
      throw new UnansweredError('the ledger is not the one that was verified');
    }
    verifier.acknowledge(organizationId, { generation, sequence: Number(sequence), hash: hash as string });
    return { epoch, answer };
  }
  const send = (organizationId: string, command: Command, changes: boolean): Promise<string[]> =>
    connection.sendUntilAnswered(
      async (attempt) => (await sendVerified(organizationId, command, attempt, changes)).answer,
    );

  /** False when another rebuild has put up its fence. */
  const sendBehindFence = async (organizationId: string, command: Command): Promise<boolean> =>
    (await connection.sendUntilAnswered((attempt) => unverified(organizationId, command, attempt)))[0] === 'DONE';

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
    /** Sends a command that may change something. */
    change: (organizationId: string, command: Command) => send(organizationId, command, true),
    read: (organizationId: string, command: Command) => send(organizationId, command, false),
    /** Makes the next command verify the organization's ledger again. */
    invalidate: verifier.invalidate,
    /** Rows from `sequence` on, oldest first; not verified. */
    rowsFrom: (organizationId: string, sequence: number, limit: number) =>
      connection.sendUntilAnswered(() => rangeOf('XRANGE', organizationId, `${sequence}-0`, '+', limit)),
    /** Rows below `before`, newest first; verified. */
    rowsBefore: (organizationId: string, before: number, limit: number): Promise<ChainedRow[]> =>
      connection.sendUntilAnswered(async (attempt) => {
        // a command of the script before the plain XREVRANGE, because only the script rejects a fenced ledger
        const { epoch } = await sendVerified(organizationId, { command: 'balance' }, attempt, false);
        const rows = before <= 1 ? [] : await rangeOf('XREVRANGE', organizationId, `${before - 1}-0`, '-', limit);
        if (connection.epoch() !== epoch) throw new UnansweredError('the connection has changed');
        return rows;
      }),
    async trimMirrored(organizationId: string, generation: string, sequence: number, keepFrom: number): Promise<void> {
      await connection.sendUntilAnswered(() =>
        unverified(organizationId, { command: 'mirrored', generation, floor: sequence, sequence, keepFrom }),
      );
    },
    async nowMs(): Promise<number> {
      if (clock) return clock.now();
      const [seconds, micros] = await connection.sendUntilAnswered(() => connection.command<string[]>('TIME'));
      return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
    },
    /** Puts up a rebuild's fence, then inspects the ledger behind it. */
    async fence(organizationId: string, fence: string): Promise<Inspection> {
      await connection.sendUntilAnswered(() => unverified(organizationId, { command: 'fence', fence }));
      return connection.sendUntilAnswered(() => inspect(organizationId, []));
    },
    restore: (organizationId: string, fence: string, generation: string, past: RebuiltPast) =>
      sendBehindFence(organizationId, { command: 'restore', fence, generation, ...past }),
    replace: (organizationId: string, fence: string, generation: string, present: RebuiltPresent) =>
      sendBehindFence(organizationId, { command: 'replace', fence, generation, grants: [], ...present }),
  };
}
