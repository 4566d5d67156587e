import { continuing, type ChainedRow, type Mirror } from './mirror.ts';
import { LostLedgerError } from './verification.ts';

export const MIRROR_BATCH = 500;
/** Mirrored rows that stay in Redis, for the first pages of a listing. */
const KEEP_ROWS = 300;

interface Parts {
  mirror: Mirror;
  /** Rows in Redis from this sequence on, oldest first. */
  rowsFrom(organizationId: string, sequence: number, limit: number): Promise<ChainedRow[]>;
  /** Rows up to this one are in the mirror: those below `keepFrom` may go from Redis. */
  mirrored(organizationId: string, generation: string, sequence: number, keepFrom: number): Promise<void>;
}

/**
 * Copies rows that the mirror does not have yet, in order, and trims Redis; resolves to their number, at most MIRROR_BATCH.
 * @throws LostLedgerError when what Redis holds does not continue the mirror
 */
export async function mirrorRows({ mirror, rowsFrom, mirrored }: Parts, organizationId: string): Promise<number> {
  for (;;) {
    const from = await mirror.registration(organizationId);
    const { generation, mirroredSequence, mirroredHash } = from;
    const rows = await rowsFrom(
      organizationId,
      mirroredSequence,
      mirroredSequence === 0 ? MIRROR_BATCH : MIRROR_BATCH + 1,
    );
    const newest =
      mirroredSequence === 0 ? { hash: '' } : rows[0]?.sequence === mirroredSequence ? rows.shift() : undefined;
    const next = newest?.hash === mirroredHash ? continuing(rows, mirroredSequence, mirroredHash) : [];
    const forked = newest?.hash !== mirroredHash || (rows.length > 0 && next.length === 0);
    if (forked) {
      const again = await mirror.registration(organizationId);
      if (again.mirroredSequence === mirroredSequence)
        throw new LostLedgerError(`what Redis holds after row ${mirroredSequence} does not continue the mirror`);
      continue;
    }
    if (next.length > 0 && !(await mirror.append(from, next))) continue;
    const sequence = next.at(-1)?.sequence ?? mirroredSequence;
    await mirrored(organizationId, generation, sequence, Math.max(1, sequence - KEEP_ROWS + 1));
    return next.length;
  }
}
