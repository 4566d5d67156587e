import { ServiceError } from 'platform/core/errors.ts';
import type { Log } from 'platform/core/log.ts';
import type { Mirror, Registration } from './mirror.ts';
import type { RedisConnection } from './connection.ts';

/** Redis holds less than, or something else than, what this organization's ledger was acknowledged to be. */
export class LostLedgerError extends ServiceError {
  constructor(cause: string) {
    super(
      'UNAVAILABLE',
      'The credit ledger of this organization has lost or forked data and must be rebuilt: npm run admin -- credits rebuild',
      { cause },
    );
  }
}

/** What Redis holds of a ledger, without trust in it. */
export interface Present {
  /** '' without an account. */
  generation: string;
  sequence: number;
  /** Of the newest row. */
  hash: string;
  /** Of the rows asked for; '' where one is not there. */
  rowHashes: readonly string[];
  nowMs: number;
}

/** The newest row that this process was told of. */
interface Seen {
  generation: string;
  sequence: number;
  hash: string;
}

/** What a step on the ledger may rely on. */
export interface Verified {
  epoch: number;
  generation: string;
  /** The account is at least so far. */
  floor: number;
}

interface Parts {
  connection: Pick<RedisConnection, 'epoch'>;
  mirror: Pick<Mirror, 'registration' | 'lose' | 'hashOf'>;
  inspect(organizationId: string, sequences: readonly number[]): Promise<Present>;
  /** Makes every replica look again before its next step on what Redis holds of this generation. */
  fence(organizationId: string, generation: string): Promise<void>;
  log: Pick<Log, 'error'>;
}

/**
 * Compares Redis with the mirror, and with what this process was told, before an organization's first step on each
 * connection. What one replica misses the others cannot know: it tells them by the mirror, and by a fence in Redis.
 */
export function verification({ connection, mirror, inspect, fence, log }: Parts) {
  // one small entry for each organization that this process has served
  const seen = new Map<string, Seen>();
  let verified = new Map<string, Promise<Verified>>();
  let epoch = connection.epoch();

  async function verify(organizationId: string): Promise<Verified> {
    const at = connection.epoch();
    for (;;) {
      const registration = await mirror.registration(organizationId);
      const { generation, mirroredSequence, lost } = registration;
      // as of now: what is told while Redis looks may be newer than what it finds
      const last = seen.get(organizationId);
      const told = last?.generation === generation ? last : undefined;
      const present = await inspect(organizationId, [mirroredSequence, told?.sequence ?? 0]);
      const rebuilding = present.generation !== '' && present.generation !== generation;
      const fault =
        lost ||
        (rebuilding
          ? `Redis holds generation ${present.generation}, the mirror ${generation}`
          : (faultOf(present, registration, told) ?? (await forkOf(organizationId, present, told))));
      if (!fault) {
        saw(organizationId, { generation, sequence: present.sequence, hash: present.hash });
        return { epoch: at, generation, floor: present.sequence };
      }
      // the mirror may have moved on, and Redis been trimmed or rebuilt, between the two looks
      if (
        !lost &&
        !(rebuilding
          ? (await mirror.registration(organizationId)).generation === generation
          : await mirror.lose(registration, fault))
      )
        continue;
      const refusal = new LostLedgerError(fault);
      // by the replica that found it
      if (!lost && !rebuilding) log.error({ organizationId, error: fault }, refusal.message);
      if (!rebuilding) await fence(organizationId, generation);
      throw refusal;
    }
  }

  /** A row that is not in Redis any more is in the mirror. */
  async function forkOf(
    organizationId: string,
    { rowHashes }: Present,
    told: Seen | undefined,
  ): Promise<string | undefined> {
    if (!told || told.sequence === 0) return undefined;
    const hash = rowHashes[1] || (await mirror.hashOf(organizationId, told.sequence));
    return hash === told.hash ? undefined : `row ${told.sequence} of Redis is not the one that was acknowledged`;
  }

  function saw(organizationId: string, newest: Seen): void {
    const last = seen.get(organizationId);
    if (last?.generation !== newest.generation || last.sequence < newest.sequence) seen.set(organizationId, newest);
  }

  return {
    /** @throws LostLedgerError, looked at anew each time; UnansweredError */
    async verified(organizationId: string): Promise<Verified> {
      if (epoch !== connection.epoch()) {
        verified = new Map();
        epoch = connection.epoch();
      }
      const present = verified;
      let found = present.get(organizationId);
      if (!found) {
        found = verify(organizationId);
        present.set(organizationId, found);
        found.catch(() => present.delete(organizationId));
      }
      const { epoch: at, generation, floor } = await found;
      const last = seen.get(organizationId);
      return { epoch: at, generation, floor: last?.generation === generation ? last.sequence : floor };
    },
    /** An answer told this newest row. */
    saw,
    /** Look again before the next step. */
    doubt: (organizationId: string): void => void verified.delete(organizationId),
  };
}

function faultOf(
  { sequence, rowHashes }: Present,
  { mirroredSequence, mirroredHash }: Registration,
  told: Seen | undefined,
): string | undefined {
  if (sequence < mirroredSequence) return `Redis ends at row ${sequence}, the mirror at ${mirroredSequence}`;
  if (mirroredSequence > 0 && rowHashes[0] !== mirroredHash)
    return `row ${mirroredSequence} of Redis is not the mirror's`;
  if (told && sequence < told.sequence) return `Redis ends at row ${sequence}, row ${told.sequence} was acknowledged`;
  return undefined;
}
