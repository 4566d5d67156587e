import { createHash } from 'node:crypto';

const BUCKETS = 256;

const bucketBase = (prefix: string, bucket: number): string => `${prefix}:{b${bucket.toString(16).padStart(2, '0')}}`;
const bucketKeys = (base: string) => ({ due: `${base}:due`, unmirrored: `${base}:unmirrored` });

/**
 * Keys of all buckets. `due` is a sorted set: organization -> earliest expiry of an open reservation, in milliseconds.
 * `unmirrored` is a set: organizations with rows that the mirror does not have.
 */
export const bucketsOf = (prefix: string) =>
  Array.from({ length: BUCKETS }, (_, bucket) => bucketKeys(bucketBase(prefix, bucket)));

export interface LedgerKeys {
  rows: string;
  /** The keys that every command of ledger.lua takes; the key of a reservation or grant follows them. */
  all: readonly string[];
  reservation(id: string): string;
  grant(id: string): string;
}

/** Keys of an organization. They share a hash tag with those of its bucket, so that one script may use all of them. */
export function keysOf(prefix: string, organizationId: string): LedgerKeys {
  const base = bucketBase(prefix, createHash('sha1').update(organizationId).digest()[0]!);
  const { due, unmirrored } = bucketKeys(base);
  const own = `${base}:${organizationId}`;
  return {
    rows: `${own}:rows`,
    all: [`${own}:account`, `${own}:open`, `${own}:rows`, due, unmirrored],
    reservation: (id) => `${own}:r:${id}`,
    grant: (id) => `${own}:g:${id}`,
  };
}
