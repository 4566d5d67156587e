import type { Log } from 'platform/core/log.ts';
import { LostLedgerError, type LedgerAccountRecord, type Mirror } from './mirror.ts';
import type { RedisConnection } from './connection.ts';

/** What Redis holds of an organization's ledger, not verified yet. */
export interface Inspection {
  /** '' without an account. */
  generation: string;
  /** Of the newest row, as is `hash`. */
  sequence: number;
  hash: string;
  /** Of the rows asked for; '' for a row that is not in Redis. */
  rowHashes: readonly string[];
  nowMs: number;
}

/** The newest row of a ledger that Redis acknowledged to this process. */
interface AcknowledgedRow {
  generation: string;
  sequence: number;
  hash: string;
}

/** What a command on a verified ledger may rely on. */
export interface Verified {
  /** The connection on which it was verified. */
  epoch: number;
  generation: string;
  /** The account's sequence is at least this. */
  floor: number;
}

interface Needs {
  connection: Pick<RedisConnection, 'epoch'>;
  mirror: Pick<Mirror, 'accountRecord' | 'markLost' | 'hashOf'>;
  inspect(organizationId: string, sequences: readonly number[]): Promise<Inspection>;
  /** Makes every replica verify this generation again before its next command. */
  fence(organizationId: string, generation: string): Promise<void>;
  log: Pick<Log, 'error'>;
}

/**
 * Verifies an organization's ledger before its first command on each connection: compares Redis with the mirror and
 * with what was acknowledged to this process. Other replicas cannot know what only this one finds missing, so it
 * informs them by a mark in the mirror and by a fence in Redis.
 */
export function ledgerVerifier({ connection, mirror, inspect, fence, log }: Needs) {
  // one small entry for each organization that this process has served
  const newestRows = new Map<string, AcknowledgedRow>();
  let verified = new Map<string, Promise<Verified>>();
  let epoch = connection.epoch();

  async function verify(organizationId: string): Promise<Verified> {
    const verifiedEpoch = connection.epoch();
    for (;;) {
      const record = await mirror.accountRecord(organizationId);
      const { generation, mirroredSequence, lost } = record;
      // read before inspecting: a row that is acknowledged meanwhile may be newer than what the inspection finds
      const last = newestRows.get(organizationId);
      const acknowledged = last?.generation === generation ? last : undefined;
      const found = await inspect(organizationId, [mirroredSequence, acknowledged?.sequence ?? 0]);
      const rebuilding = found.generation !== '' && found.generation !== generation;
      const fault =
        lost ||
        (rebuilding
          ? `Redis holds generation ${found.generation}, the mirror ${generation}`
          : (faultOf(found, record, acknowledged) ?? (await forkOf(organizationId, found, acknowledged))));
      if (!fault) {
        acknowledge(organizationId, { generation, sequence: found.sequence, hash: found.hash });
        return { epoch: verifiedEpoch, generation, floor: found.sequence };
      }
      // between the two reads the mirror may have advanced, or Redis may have been trimmed or rebuilt: then verify
      // again
      if (
        !lost &&
        !(rebuilding
          ? (await mirror.accountRecord(organizationId)).generation === generation
          : await mirror.markLost(record, fault))
      )
        continue;
      const error = new LostLedgerError(fault);
      // only the replica that found the fault logs it
      if (!lost && !rebuilding) log.error({ organizationId, error: fault }, error.message);
      if (!rebuilding) await fence(organizationId, generation);
      throw error;
    }
  }

  /** Compares the acknowledged row's hash with the row in Redis or, where Redis has trimmed it, in the mirror. */
  async function forkOf(
    organizationId: string,
    { rowHashes }: Inspection,
    acknowledged: AcknowledgedRow | undefined,
  ): Promise<string | undefined> {
    if (!acknowledged || acknowledged.sequence === 0) return undefined;
    const { sequence } = acknowledged;
    const hash = rowHashes[1] || (await mirror.hashOf(organizationId, sequence));
    return hash === acknowledged.hash ? undefined : `row ${sequence} of Redis is not the one that was acknowledged`;
  }

  function acknowledge(organizationId: string, newest: AcknowledgedRow): void {
    const last = newestRows.get(organizationId);
    if (last?.generation !== newest.generation || last.sequence < newest.sequence)
      newestRows.set(organizationId, newest);
  }

  return {
    /** @throws LostLedgerError, after a new verification each time; UnansweredError */
    async verified(organizationId: string): Promise<Verified> {
      if (epoch !== connection.epoch()) {
        verified = new Map();
        epoch = connection.epoch();
      }
      const ofEpoch = verified;
      let pending = ofEpoch.get(organizationId);
      if (!pending) {
        pending = verify(organizationId);
        ofEpoch.set(organizationId, pending);
        pending.catch(() => ofEpoch.delete(organizationId));
      }
      const { epoch: verifiedEpoch, generation, floor } = await pending;
      const last = newestRows.get(organizationId);
      return { epoch: verifiedEpoch, generation, floor: last?.generation === generation ? last.sequence : floor };
    },
    /** Remembers the newest row that an answer of Redis named. */
    acknowledge,
    /** Makes the next command verify the ledger again. */
    invalidate: (organizationId: string): void => void verified.delete(organizationId),
  };
}

function faultOf(
  { sequence, rowHashes }: Inspection,
  { mirroredSequence, mirroredHash }: LedgerAccountRecord,
  acknowledged: AcknowledgedRow | undefined,
): string | undefined {
  if (sequence < mirroredSequence) return `Redis ends at row ${sequence}, the mirror at ${mirroredSequence}`;
  if (mirroredSequence > 0 && rowHashes[0] !== mirroredHash)
    return `row ${mirroredSequence} of Redis is not the mirror's`;
  if (acknowledged && sequence < acknowledged.sequence)
    return `Redis ends at row ${sequence}, row ${acknowledged.sequence} was acknowledged`;
  return undefined;
}
