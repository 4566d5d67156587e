import { actorOf, servicePrincipal, type Actor, type Principal } from 'platform/core/principal.ts';
import type { Account, Change, Rejection, ReservationState } from './rules.ts';

/**
 * The ledger port: accounts, reservations, and the rows that record every change. The acceptance suite
 * (test/ledger-suite.ts) checks every engine against these rules:
 * - Each call is one atomic operation on one organization; an acknowledged change is durable.
 * - The caller makes the ids (UUIDv7). Repeating a call returns the present state and changes nothing.
 * - Every change of an account is one row, numbered without gaps. The available balance never falls below zero.
 * - A reservation expires by the engine's clock, whether or not the sweeper has run.
 * - Expected outcomes are values. Invalid arguments throw ServiceError INVALID_REQUEST before any write.
 * Amounts are whole micro-credits.
 */
export interface Ledger {
  grant(organizationId: string, grant: GrantArguments, author: Author): Promise<GrantResult>;
  /** Expires the organization's reservations that are due, then reserves the amount. */
  reserve(organizationId: string, request: ReserveArguments, author: Author): Promise<ReserveResult>;
  /** Moves the expiry of an open reservation to `ttlMs` from now, never to an earlier time. */
  extend(organizationId: string, id: string, ttlMs: number): Promise<ExtendResult>;
  /** Charges a reservation; idempotent. After its expiry the charge is taken from the available balance. */
  settle(organizationId: string, id: string, chargeMicros: number, author: Author): Promise<SettleResult>;
  /** Gives the amount back; idempotent. An unknown id becomes RELEASED: a tombstone that a late reserve runs into. */
  release(organizationId: string, id: string, author: Author): Promise<ReleaseResult>;
  /** Expires at most `limit` reservations that are due. Resolves to their number. */
  expire(organizationId: string, limit: number): Promise<number>;
  /** All zeros for an organization without rows. */
  balance(organizationId: string): Promise<Account>;
  /** Rows with a sequence below `before` (0: all rows), newest first. */
  rows(organizationId: string, before: number, limit: number): Promise<LedgerRow[]>;
  /** Rows that are not acknowledged as published yet, oldest first. */
  unrelayed(organizationId: string, limit: number): Promise<LedgerRow[]>;
  /** Marks rows up to this sequence as published. A lower sequence than before changes nothing. */
  acknowledge(organizationId: string, throughSequence: number): Promise<void>;
  /**
   * Rebuilds the account from its rows.
   * @throws ServiceError NOT_SUPPORTED by an engine that needs no rebuild; CONFLICT
   */
  rebuild(organizationId: string): Promise<Account>;
}

/**
 * For jobs: operations across organizations. Lists hold organization ids above `after` ('': from the first), in order.
 */
export interface PlatformLedger {
  /** Organizations with a reservation that is due to expire. */
  organizationsDue(after: string, limit: number): Promise<string[]>;
  /** Organizations with an open reservation that expires before this time. */
  organizationsExpiring(beforeMs: number, after: string, limit: number): Promise<string[]>;
  /** Organizations with rows that are not acknowledged as published. */
  organizationsUnrelayed(after: string, limit: number): Promise<string[]>;
  /**
   * Deletes at most `limit` ended reservations whose ids are older than the retention window; such ids are rejected
   * anyway. Resolves to their number, which is always 0 on an engine that deletes them by itself.
   */
  deleteEnded(limit: number): Promise<number>;
}

/** Copies rows from the engine to the document store, the mirror. */
export interface Mirroring {
  /** As in PlatformLedger: organizations with rows that the mirror does not have. */
  organizationsUnmirrored(after: string, limit: number): Promise<string[]>;
  /** Copies one batch of rows. Resolves to whether there may be more. */
  mirror(organizationId: string): Promise<boolean>;
}

export interface OpenLedger {
  readonly ledger: Ledger;
  readonly platformLedger: PlatformLedger;
  /** Only where the engine does not keep its rows. */
  readonly mirroring?: Mirroring;
  /** Finishes pending writes and closes the engine. */
  close(): Promise<void>;
}

/** Who changed the account, and in which request ('' where the service itself did). */
export interface Author {
  actor: Actor;
  requestId: string;
}

export const authorOf = ({ principal, requestId }: { principal: Principal; requestId: string }): Author => ({
  actor: actorOf(principal),
  requestId,
});
/** The author of expiries. */
export const SERVICE_AUTHOR: Author = { actor: actorOf(servicePrincipal('credits')), requestId: '' };
/** How many reservations one reserve expires at most; the sweeper expires the rest. */
export const EXPIRIES_PER_RESERVE = 1000;

export interface LedgerRow extends Author, Omit<Change, 'openDelta'> {
  sequence: number;
  /** The account after this row. */
  availableMicros: number;
  reservedMicros: number;
  createdAt: string;
}

export interface GrantArguments {
  id: string;
  amountMicros: number;
  note: string;
}
export interface ReserveArguments {
  id: string;
  amountMicros: number;
  ttlMs: number;
  /** How many open reservations the organization may have, including this one; 0: no limit. */
  maxOpen: number;
}

type Rejected<R extends Rejection> = { readonly outcome: R };

export type GrantResult =
  | { readonly outcome: 'GRANTED'; readonly account: Account }
  | Rejected<'CONFLICT' | 'ACCOUNT_FULL' | 'ID_OUT_OF_WINDOW'>;
export type ReserveResult =
  | { readonly outcome: 'RESERVED' | 'ENDED'; readonly state: ReservationState; readonly availableMicros: number }
  | { readonly outcome: 'INSUFFICIENT' | 'TOO_MANY_OPEN'; readonly availableMicros: number }
  | Rejected<'CONFLICT' | 'ID_OUT_OF_WINDOW'>;
/**
 * `FOUND` in the following results: the reservation is known. `state` says whether the call had an effect: an ended
 * reservation does not change.
 */
export type ExtendResult =
  { readonly outcome: 'FOUND'; readonly state: ReservationState } | Rejected<'UNKNOWN' | 'ID_OUT_OF_WINDOW'>;
export type SettleResult =
  | {
      readonly outcome: 'FOUND';
      readonly state: ReservationState;
      readonly chargedMicros: number;
      readonly shortfallMicros: number;
    }
  | Rejected<'UNKNOWN' | 'ID_OUT_OF_WINDOW'>;
export type ReleaseResult =
  { readonly outcome: 'FOUND'; readonly state: ReservationState } | Rejected<'ID_OUT_OF_WINDOW'>;
