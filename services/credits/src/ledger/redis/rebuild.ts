import { strict as assert } from 'node:assert';
import { newId } from 'platform/core/ids.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { isInWindow } from '../arguments.ts';
import type { LedgerRow } from '../ledger.ts';
import { chainContinuation, LostLedgerError, rowOf, type LedgerAccountRecord, type Mirror } from './mirror.ts';
import { applyChange, EMPTY_ACCOUNT, type Account, type ReservationState } from '../rules.ts';

const PAGE = 1000;
/** Extensions are not in the rows, so an open reservation gets this much time to be extended or settled. */
const GRACE_MS = 600_000;

interface Reservation {
  id: string;
  state: ReservationState;
  amount: number;
  charged: number;
  shortfall: number;
  expiresAtMs: number;
}
/** What is kept only to answer repeated calls, within the retention window: ended reservations and grants. */
export interface RebuiltPast {
  reservations: Reservation[];
  grants: { id: string; amount: number }[];
}
/** The ledger's present state as its rows give it. */
export interface RebuiltPresent {
  account: Account & { hash: string };
  /** Open reservations. */
  reservations: Reservation[];
  /** JSON of the newest row; '' without rows. */
  newest: string;
}
interface Needs {
  mirror: Mirror;
  retentionMs: number;
  /** Copies a batch of rows from Redis to the mirror. Resolves to their number. @throws LostLedgerError */
  mirrorBatch(organizationId: string): Promise<number>;
  /**
   * Lets only the holder of this fence change the ledger in Redis. Resolves to the engine's time and newest sequence.
   */
  fence(organizationId: string, fence: string): Promise<{ nowMs: number; sequence: number }>;
  /** Writes a piece of what `replace` makes valid. False when another rebuild has put up its fence. */
  restore(organizationId: string, fence: string, generation: string, past: RebuiltPast): Promise<boolean>;
  /** Replaces the ledger and lifts the fence. False when another rebuild has put up its fence. */
  replace(organizationId: string, fence: string, generation: string, present: RebuiltPresent): Promise<boolean>;
}

const ROUNDS = 10;
/** Reservations, and grants, in one call of the script: Redis serves nobody else while a script runs. */
const PIECE = 500;

/**
 * Mirrors the rows that survived in Redis, then replaces the ledger in Redis by the one that the mirror's rows add up
 * to.
 * @throws ServiceError CONFLICT when another rebuild runs
 */
export async function rebuildLedger(needs: Needs, organizationId: string): Promise<Account> {
  const { mirror, retentionMs, mirrorBatch, restore, replace } = needs;
  const { generation, fenceValue, nowMs, sequence } = await fenceLedger(needs, organizationId);
  try {
    // stops at the fenced sequence: if another rebuild replaced the ledger, new rows may arrive as fast as these are
    // copied
    while (
      (await mirror.accountRecord(organizationId)).mirroredSequence < sequence &&
      (await mirrorBatch(organizationId)) > 0
    );
  } catch (error) {
    if (!(error instanceof LostLedgerError)) throw error;
  }
  const { present, past } = await replayRows(mirror, await mirror.accountRecord(organizationId), nowMs, retentionMs);
  for (let at = 0; at < Math.max(past.reservations.length, past.grants.length); at += PIECE) {
    const piece = {
      reservations: past.reservations.slice(at, at + PIECE),
      grants: past.grants.slice(at, at + PIECE),
    };
    if (!(await restore(organizationId, fenceValue, generation, piece))) throw alreadyRebuilding();
  }
  if (!(await replace(organizationId, fenceValue, generation, present))) throw alreadyRebuilding();
  const { hash: _, ...account } = present.account;
  return account;
}

const alreadyRebuilding = (): ServiceError =>
  new ServiceError('CONFLICT', 'The credit ledger of this organization is being rebuilt already');

/**
 * Starts a new generation in the mirror, then puts up the fence in Redis. Another rebuild may do the same at this
 * moment. The one that still finds its own generation in the mirror after it fenced Redis may continue: a rebuild that
 * starts a generation later also puts up a later fence, which stops this one.
 */
async function fenceLedger(
  { mirror, fence }: Needs,
  organizationId: string,
): Promise<{ generation: string; fenceValue: string; nowMs: number; sequence: number }> {
  for (let round = 0; round < ROUNDS; round++) {
    const generation = newId();
    if (!(await mirror.startGeneration(await mirror.accountRecord(organizationId), generation))) continue;
    const fenceValue = `rebuilding ${generation}`;
    const present = await fence(organizationId, fenceValue);
    if ((await mirror.accountRecord(organizationId)).generation === generation)
      return { ...present, generation, fenceValue };
  }
  throw alreadyRebuilding();
}

async function replayRows(
  mirror: Mirror,
  { _id: organizationId, mirroredSequence, mirroredHash }: LedgerAccountRecord,
  nowMs: number,
  retentionMs: number,
): Promise<{ present: RebuiltPresent; past: RebuiltPast }> {
  const grants = new Map<string, number>();
  const reservations = new Map<string, Reservation>();
  let account: Account & { hash: string } = { ...EMPTY_ACCOUNT, hash: '' };
  let newest = '';
  while (account.sequence < mirroredSequence) {
    // stops at mirroredSequence: if another rebuild has replaced the ledger, the mirror may be growing again
    const page = await mirror.after(
      organizationId,
      account.sequence,
      Math.min(PAGE, mirroredSequence - account.sequence),
    );
    assert.ok(
      page.length > 0 && chainContinuation(page, account.sequence, account.hash).length === page.length,
      `the mirror of ${organizationId} is broken after row ${account.sequence}`,
    );
    for (const one of page) {
      const row = rowOf(one);
      replay(row, grants, reservations, nowMs);
      account = { ...applyChange(account, { ...row, openDelta: openDeltaOf(row) }), hash: one.hash };
      assert.equal(
        account.availableMicros,
        row.availableMicros,
        `row ${row.sequence} of ${organizationId} does not add up`,
      );
      newest = one.row;
    }
    for (const [id, { state }] of reservations)
      if (state !== 'OPEN' && !isInWindow(id, nowMs, retentionMs)) reservations.delete(id);
    for (const id of grants.keys()) if (!isInWindow(id, nowMs, retentionMs)) grants.delete(id);
  }
  assert.equal(account.hash, mirroredHash);
  const { open = [], ended = [] } = Object.groupBy(reservations.values(), ({ state }) =>
    state === 'OPEN' ? 'open' : 'ended',
  );
  return {
    present: { account, reservations: open, newest },
    past: { reservations: ended, grants: [...grants].map(([id, amount]) => ({ id, amount })) },
  };
}

const openDeltaOf = ({ kind }: LedgerRow): number =>
  kind === 'RESERVE' ? 1 : kind === 'SETTLE' || kind === 'RELEASE' || kind === 'EXPIRE' ? -1 : 0;

function replay(
  row: LedgerRow,
  grants: Map<string, number>,
  reservations: Map<string, Reservation>,
  nowMs: number,
): void {
  const { kind, id } = row;
  if (kind === 'GRANT') return void grants.set(id, row.grantedDeltaMicros);
  if (kind === 'RESERVE')
    return void reservations.set(id, {
      id,
      state: 'OPEN',
      amount: row.reservedDeltaMicros,
      charged: 0,
      shortfall: 0,
      expiresAtMs: nowMs + GRACE_MS,
    });
  const one = reservations.get(id);
  if (!one) return;
  one.state = kind === 'RELEASE' ? 'RELEASED' : kind === 'EXPIRE' ? 'EXPIRED' : 'SETTLED';
  one.charged = row.spentDeltaMicros;
  one.shortfall = row.shortfallMicros;
}
