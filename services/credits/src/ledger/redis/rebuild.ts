import { strict as assert } from 'node:assert';
import { newId } from 'platform/core/ids.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { isInWindow } from '../arguments.ts';
import type { LedgerRow } from '../ledger.ts';
import { continuing, rowOf, type Mirror, type Registration } from './mirror.ts';
import { changed, EMPTY_ACCOUNT, type Account, type ReservationState } from '../rules.ts';
import { LostLedgerError } from './verification.ts';

const PAGE = 1000;
/** Extensions are not rows: an open reservation gets so much time to be extended or settled. */
const GRACE_MS = 600_000;

interface Reservation {
  id: string;
  state: ReservationState;
  amount: number;
  charged: number;
  shortfall: number;
  expiresAtMs: number;
}
/** What is there to be remembered alone, within the retention window. */
export interface Ended {
  reservations: Reservation[];
  grants: { id: string; amount: number }[];
}
/** What a ledger goes on from, as its rows tell it. */
export interface RebuiltPresent {
  account: Account & { hash: string };
  /** Open ones. */
  reservations: Reservation[];
  /** Text of the newest row; '' without one. */
  newest: string;
}
interface Parts {
  mirror: Mirror;
  retentionMs: number;
  /** Copies a batch of surviving rows; resolves to their number. @throws LostLedgerError */
  mirrorSome(organizationId: string): Promise<number>;
  /** From then on nobody but who holds the fence changes this ledger in Redis; resolves to the engine's time and newest row. */
  fence(organizationId: string, fence: string): Promise<{ nowMs: number; sequence: number }>;
  /** What the ledger knows again when it is replaced, in pieces. False when another rebuild put up its fence. */
  restore(organizationId: string, fence: string, generation: string, ended: Ended): Promise<boolean>;
  /** False when another rebuild put up its fence. */
  replace(organizationId: string, fence: string, generation: string, present: RebuiltPresent): Promise<boolean>;
}

const ROUNDS = 10;
/** Reservations, and grants, in one script, which stops Redis for everybody. */
const PIECE = 500;

/** Saves what survived in Redis, then puts the ledger that the mirror's rows make in its place. @throws ServiceError CONFLICT */
export async function rebuildLedger(parts: Parts, organizationId: string): Promise<Account> {
  const { mirror, retentionMs, mirrorSome, restore, replace } = parts;
  const { generation, own, nowMs, sequence } = await fenced(parts, organizationId);
  try {
    // no further: behind another rebuild's back new rows come as fast as these are copied
    while (
      (await mirror.registration(organizationId)).mirroredSequence < sequence &&
      (await mirrorSome(organizationId)) > 0
    );
  } catch (error) {
    if (!(error instanceof LostLedgerError)) throw error;
  }
  const { present, ended } = await rebuild(mirror, await mirror.registration(organizationId), nowMs, retentionMs);
  for (let at = 0; at < Math.max(ended.reservations.length, ended.grants.length); at += PIECE) {
    const piece = {
      reservations: ended.reservations.slice(at, at + PIECE),
      grants: ended.grants.slice(at, at + PIECE),
    };
    if (!(await restore(organizationId, own, generation, piece))) throw busy();
  }
  if (!(await replace(organizationId, own, generation, present))) throw busy();
  const { hash: _, ...account } = present.account;
  return account;
}

const busy = (): ServiceError =>
  new ServiceError('CONFLICT', 'The credit ledger of this organization is being rebuilt already');

/**
 * A new generation in the mirror, then the fence in Redis. Another rebuild may do the same at this moment: who finds its own
 * generation still in the mirror behind its fence may go on, for whoever renews it later puts up a later fence, too.
 */
async function fenced(
  { mirror, fence }: Parts,
  organizationId: string,
): Promise<{ generation: string; own: string; nowMs: number; sequence: number }> {
  for (let round = 0; round < ROUNDS; round++) {
    const generation = newId();
    if (!(await mirror.renew(await mirror.registration(organizationId), generation))) continue;
    const own = `rebuilding ${generation}`;
    const present = await fence(organizationId, own);
    if ((await mirror.registration(organizationId)).generation === generation) return { ...present, generation, own };
  }
  throw busy();
}

async function rebuild(
  mirror: Mirror,
  { _id: organizationId, mirroredSequence, mirroredHash }: Registration,
  nowMs: number,
  retentionMs: number,
): Promise<{ present: RebuiltPresent; ended: Ended }> {
  const grants = new Map<string, number>();
  const reservations = new Map<string, Reservation>();
  let account: Account & { hash: string } = { ...EMPTY_ACCOUNT, hash: '' };
  let newest = '';
  while (account.sequence < mirroredSequence) {
    // no further: the ledger may go on by now, behind another rebuild's fence
    const page = await mirror.after(
      organizationId,
      account.sequence,
      Math.min(PAGE, mirroredSequence - account.sequence),
    );
    assert.ok(
      page.length > 0 && continuing(page, account.sequence, account.hash).length === page.length,
      `the mirror of ${organizationId} is broken after row ${account.sequence}`,
    );
    for (const one of page) {
      const row = rowOf(one);
      take(row, grants, reservations, nowMs);
      account = { ...changed(account, { ...row, openDelta: openDeltaOf(row) }), hash: one.hash };
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
    ended: { reservations: ended, grants: [...grants].map(([id, amount]) => ({ id, amount })) },
  };
}

const openDeltaOf = ({ kind }: LedgerRow): number =>
  kind === 'RESERVE' ? 1 : kind === 'SETTLE' || kind === 'RELEASE' || kind === 'EXPIRE' ? -1 : 0;

function take(
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
