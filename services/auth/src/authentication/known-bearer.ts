import type { Attempt } from 'proto/auth/v1/auth.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import type { Principal } from 'platform/core/principal.ts';
import type { OrganizationRecord } from '../organizations/store.ts';

/** A bearer that belongs to somebody known, before its organization is read. */
export interface KnownBearer {
  organizationId: string;
  /** False when it is revoked or expired. */
  valid: boolean;
  principalIn(organization: OrganizationRecord): Principal;
  /** Why it may not be used for a method that needs this scope, from this address; undefined: it may. */
  restrictionOn?(scope: string, address: string): string | undefined;
  /** Of a server token: which one is used. `isFirst`: it was never used before. */
  use?: { tokenId: string; isFirst: boolean };
}

/**
 * Finds the bearers of one form among those of a call, by a fixed number of reads for all of them, and by none for
 * bearers whose form is wrong. The others are not in the map. Organizations are read once for all resolvers.
 */
export type ResolveBearers = (
  bearers: readonly string[],
  given: ResolveGiven,
) => Promise<ReadonlyMap<string, KnownBearer>>;

/** Of the call, whose deadline and signal are those of the calls that a resolver makes. */
export interface ResolveGiven extends Pick<CallContext, 'deadline' | 'signal'> {
  /** Milliseconds since the epoch. */
  nowMs: number;
  attempts: readonly Attempt[];
}
