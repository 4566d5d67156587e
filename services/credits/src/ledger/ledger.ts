import { actorOf, servicePrincipal, type Actor } from 'platform/core/principal.ts';
import type { Account, Change, Refusal, ReservationState } from './rules.ts';

/**
 * The ledger port: accounts, reservations and the rows that add up to them. One acceptance suite (test/ledger-suite.ts)
 * holds every engine to these rules:
 * - One method is one atomic step on one organization; what it acknowledges is durable.
 * - The caller makes the ids (UUIDv7); a repeat answers the present state and changes nothing.
 * - Every change of an account is one row, numbered without gaps; available never falls below zero.
 * - The engine's clock decides when a reservation has expired, swept or not.
 * - Expected outcomes are values. Arguments out of bounds reject with ServiceError INVALID_REQUEST before any write.
 * Amounts are whole micro-credits.
 */
export interface Ledger {
  grant(organizationId: string, grant: Grant, author: Author): Promise<GrantResult>;
  /** Expires what is due in the organization, then sets the amount aside. */
  reserve(organizationId: string, wanted: Wanted, author: Author): Promise<ReserveResult>;
  /** Moves the end of an open reservation to `ttlMs` from now, never to an earlier time. */
  extend(organizationId: string, id: string, ttlMs: number): Promise<ExtendResult>;
  /** Charges a reservation once; after its expiry, what is left of the account. */
  settle(organizationId: string, id: string, chargeMicros: number, author: Author): Promise<SettleResult>;
  /** An unknown id becomes RELEASED, so that a reserve which arrives later is refused. */
  release(organizationId: string, id: string, author: Author): Promise<ReleaseResult>;
  /** Expires at most `limit` reservations that are due; resolves to their number. */
  expire(organizationId: string, limit: number): Promise<number>;
  /** An organization without any row has an account of zeros. */
  balance(organizationId: string): Promise<Account>;
  /** Rows numbered below `before` (0: all), newest first. */
  rows(organizationId: string, before: number, limit: number): Promise<LedgerRow[]>;
  /** Rows that are not acknowledged yet, oldest first. */
  unrelayed(organizationId: string, limit: number): Promise<LedgerRow[]>;
  /** Rows up to this sequence have reached the event bus; a lower number than before changes nothing. */
  acknowledge(organizationId: string, throughSequence: number): Promise<void>;
  /** Makes the account anew from its rows. @throws ServiceError NOT_SUPPORTED where rows and account cannot part */
  rebuild(organizationId: string): Promise<Account>;
}

/** What looks across organizations, for the jobs. Lists are of ids above `after` ('' for the first page), in order. */
export interface PlatformLedger {
  organizationsDue(after: string, limit: number): Promise<string[]>;
  organizationsUnrelayed(after: string, limit: number): Promise<string[]>;
  /** Deletes at most `limit` ended reservations whose id is older than the retention window, so refused with or without them; resolves to their number (0 where they go by themselves). */
  forget(limit: number): Promise<number>;
}

/** Rows that leave the engine for the document store. */
export interface Mirroring {
  organizationsUnmirrored(after: string, limit: number): Promise<string[]>;
  /** Copies a batch of rows; resolves to whether there may be more. */
  mirror(organizationId: string): Promise<boolean>;
}

export interface OpenLedger {
  readonly ledger: Ledger;
  readonly platformLedger: PlatformLedger;
  /** Where rows do not stay in the engine. */
  readonly mirroring?: Mirroring;
  /** Finishes what was begun. */
  close(): Promise<void>;
}

/** Who changed the account, and in which request ('' for the service itself). */
export interface Author {
  actor: Actor;
  requestId: string;
}

/** The author of an expiry. */
export const ITSELF: Author = { actor: actorOf(servicePrincipal('credits')), requestId: '' };
/** Expiries in one reserve; what is left over is the sweeper's. */
export const EXPIRIES_PER_RESERVE = 1000;

export interface LedgerRow extends Author, Omit<Change, 'openDelta'> {
  sequence: number;
  /** The account after this row. */
  availableMicros: number;
  reservedMicros: number;
  createdAt: string;
}

export interface Grant {
  id: string;
  amountMicros: number;
  note: string;
}
export interface Wanted {
  id: string;
  amountMicros: number;
  ttlMs: number;
  /** Open reservations that the organization may have with this one; 0: no limit. */
  maxOpen: number;
}

type Refused<R extends Refusal> = { readonly outcome: R };

export type GrantResult =
  | { readonly outcome: 'GRANTED'; readonly account: Account }
  | Refused<'CONFLICT' | 'ACCOUNT_FULL' | 'ID_OUT_OF_WINDOW'>;
export type ReserveResult =
  | { readonly outcome: 'RESERVED' | 'ENDED'; readonly state: ReservationState; readonly availableMicros: number }
  | { readonly outcome: 'INSUFFICIENT' | 'TOO_MANY_OPEN'; readonly availableMicros: number }
  | Refused<'CONFLICT' | 'ID_OUT_OF_WINDOW'>;
export type ExtendResult =
  { readonly outcome: 'FOUND'; readonly state: ReservationState } | Refused<'UNKNOWN' | 'ID_OUT_OF_WINDOW'>;
export type SettleResult =
  | {
      readonly outcome: 'FOUND';
      readonly state: ReservationState;
      readonly chargedMicros: number;
      readonly shortfallMicros: number;
    }
  | Refused<'UNKNOWN' | 'ID_OUT_OF_WINDOW'>;
export type ReleaseResult =
  { readonly outcome: 'FOUND'; readonly state: ReservationState } | Refused<'ID_OUT_OF_WINDOW'>;
