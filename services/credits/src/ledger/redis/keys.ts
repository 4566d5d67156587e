import { createHash } from 'node:crypto';

const BUCKETS = 256;

const bucketBase = (prefix: string, bucket: number): string => `${prefix}:{b${bucket.toString(16).padStart(2, '0')}}`;
const bucketKeys = (base: string) => ({ due: `${base}:due`, unmirrored: `${base}:unmirrored` });

/** Keys of all buckets: due (organization -> earliest end of an open reservation), unmirrored (organizations with rows above the mirror). */
export const bucketsOf = (prefix: string) =>
  Array.from({ length: BUCKETS }, (_, bucket) => bucketKeys(bucketBase(prefix, bucket)));

export interface LedgerKeys {
  rows: string;
  /** What the script takes before the key of a reservation or grant. */
  all: readonly string[];
  reservation(id: string): string;
  grant(id: string): string;
}

/** The keys of an organization and of its bucket share a hash tag, so that one script may touch them in a cluster too. */
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
