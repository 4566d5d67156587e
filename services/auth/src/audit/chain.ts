import { hash } from 'node:crypto';

/** A place in the chain of an organization: the number of an entry, from 1 on, and its hash. */
export interface Place {
  readonly sequence: number;
  readonly hash: string;
}
/** Before the first entry. */
export const START: Place = { sequence: 0, hash: '' };

/** What an audit entry says. */
export interface AuditFacts {
  /** The id of its event: a UUIDv7, so text order is time order. */
  _id: string;
  organizationId: string;
  /** ISO-8601 UTC. */
  at: string;
  /** "server_token.revoke" ... */
  action: string;
  /** "success", "denied" or "failure". */
  outcome: string;
  actorKind: string;
  actorId: string;
  actorName: string;
  /** The operator who acted as this user (AssumeUser); else empty. */
  actorVia: string;
  targetType: string | null;
  targetId: string | null;
  /** The error code of a denial or failure. */
  code: string | null;
  /** How many equal denials this entry stands for; 1 for anything else. */
  count: number;
  requestId: string;
  /** JSON text of AuditChanges; absent where nothing is said of a change. */
  changes?: string;
}
export interface ChainedEntry extends AuditFacts, Place {
  /** Of the entry before it; empty for the first. */
  readonly previousHash: string;
}

/**
 * SHA-256 in base64url over the canonical JSON of what the entry says and of the hash before it. What is null or absent
 * is left out, so a member that a later release adds changes no hash of an earlier entry. The number is not in it: an
 * entry's hash says what it follows, and by that its place.
 */
export function hashOf(entry: AuditFacts, previousHash: string): string {
  const text = (value: string | null | undefined): string | undefined => value?.toWellFormed();
  // In the order of names, so that JSON.stringify makes the canonical text; engines store no half surrogate pairs.
  const members = {
    _id: entry._id,
    action: text(entry.action),
    actorId: text(entry.actorId),
    actorKind: text(entry.actorKind),
    actorName: text(entry.actorName),
    actorVia: text(entry.actorVia),
    at: entry.at,
    changes: text(entry.changes),
    code: text(entry.code),
    count: entry.count,
    organizationId: text(entry.organizationId),
    outcome: text(entry.outcome),
    previousHash,
    requestId: text(entry.requestId),
    targetId: text(entry.targetId),
    targetType: text(entry.targetType),
  };
  return hash('sha256', JSON.stringify(members), 'base64url');
}

/** The entries as they follow a place, in this order. */
export function chained(after: Place, entries: readonly AuditFacts[]): ChainedEntry[] {
  let place = after;
  return entries.map((entry) => {
    const previousHash = place.hash;
    place = { sequence: place.sequence + 1, hash: hashOf(entry, previousHash) };
    return { ...entry, ...place, previousHash };
  });
}

/**
 * `removed`: there is no entry with this number. `changed`: an entry has not the hash of what it says. `moved`: it
 * follows another entry than the one before it, so one of both was replaced, or moved from its place. `added`: it has
 * the number of another entry, or one after the end.
 */
export interface Fault extends Pick<Place, 'sequence'> {
  readonly kind: 'removed' | 'changed' | 'moved' | 'added';
  /** Number of the last of several entries that were removed. */
  readonly through?: number;
  readonly entryId?: string;
}

/** Checks entries in the order of their numbers, the first of which must follow `after`. */
export function checkChain(after: Place, entries: readonly ChainedEntry[]): { faults: Fault[]; last: Place } {
  const faults: Fault[] = [];
  let last = after;
  for (const entry of entries) {
    const { sequence, previousHash, hash: ownHash } = entry;
    const fault = (kind: Fault['kind']): void => void faults.push({ kind, sequence, entryId: entry._id });
    if (hashOf(entry, previousHash) !== ownHash) fault('changed');
    if (sequence <= last.sequence) {
      fault('added');
      continue;
    }
    if (sequence > last.sequence + 1) faults.push(removed(last.sequence + 1, sequence - 1));
    else if (previousHash !== last.hash) fault('moved');
    last = { sequence, hash: ownHash };
  }
  return { faults, last };
}

export const removed = (sequence: number, through: number): Fault => ({ kind: 'removed', sequence, through });
