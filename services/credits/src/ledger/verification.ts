import { ServiceError } from 'platform/errors.ts';
import type { Mirror, Registration } from './mirror.ts';
import type { RedisConnection } from './redis-connection.ts';

/** Redis holds less than, or something else than, what this organization's ledger was acknowledged to be. */
export class LostLedger extends ServiceError {
  constructor(cause: string) {
    super('UNAVAILABLE', 'The credit ledger of this organization has lost or forked data and must be rebuilt: npm run admin -- credits rebuild', { cause });
  }
}

/** What Redis holds of a ledger, without trust in it. */
export interface Present {
  /** '' without an account. */
  generation: string;
  sequence: number;
  /** Of the row asked for; '' when it is not there. */
  rowHash: string;
  nowMs: number;
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
  mirror: Pick<Mirror, 'registration'>;
  inspect(organizationId: string, sequence: number): Promise<Present>;
}

/** Compares Redis with the mirror before an organization's first step on each connection. */
export function verification({ connection, mirror, inspect }: Parts) {
  const seen = new Map<string, { generation: string; sequence: number }>();
  let verified = new Map<string, Promise<Verified>>();
  let epoch = connection.epoch();

  async function verify(organizationId: string): Promise<Verified> {
    const at = connection.epoch();
    let registration = await mirror.registration(organizationId);
    for (;;) {
      const { generation, mirroredSequence } = registration;
      const present = await inspect(organizationId, mirroredSequence);
      const fault = faultOf(present, registration, seen.get(organizationId));
      if (!fault) {
        seen.set(organizationId, { generation, sequence: present.sequence });
        return { epoch: at, generation, floor: present.sequence };
      }
      // the mirror may have moved on, and Redis been trimmed, between the two looks
      registration = await mirror.registration(organizationId);
      if (registration.generation === generation && registration.mirroredSequence === mirroredSequence) throw new LostLedger(fault);
    }
  }

  return {
    /** @throws LostLedger, looked at anew each time; Unanswered */
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
    /** An answer told this sequence. */
    saw(organizationId: string, generation: string, sequence: number): void {
      const last = seen.get(organizationId);
      if (last?.generation !== generation || last.sequence < sequence) seen.set(organizationId, { generation, sequence });
    },
    /** Look again before the next step. */
    doubt: (organizationId: string): void => void verified.delete(organizationId),
  };
}

function faultOf(present: Present, { generation, mirroredSequence, mirroredHash }: Registration, seen: { generation: string; sequence: number } | undefined): string | undefined {
  if (present.generation !== '' && present.generation !== generation) return `Redis holds generation ${present.generation}, the mirror ${generation}`;
  if (present.sequence < mirroredSequence) return `Redis ends at row ${present.sequence}, the mirror at ${mirroredSequence}`;
  if (mirroredSequence > 0 && present.rowHash !== mirroredHash) return `row ${mirroredSequence} of Redis is not the mirror's`;
  if (seen?.generation === generation && present.sequence < seen.sequence) return `Redis ends at row ${present.sequence}, row ${seen.sequence} was acknowledged`;
  return undefined;
}
