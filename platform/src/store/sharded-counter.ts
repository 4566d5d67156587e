import { strict as assert } from 'node:assert';
import {
  DuplicateKeyError,
  insert,
  update,
  type Collection,
  type Op,
  type OrganizationDocument,
  type Store,
} from './store.ts';

/** A record of an organization's counters: one for each counter shard (jobs/counter-shards.ts). */
export interface CounterRecord extends OrganizationDocument {
  /** Number of the counter shard. */
  k: number;
}
type Counters<D> = { readonly [K in Exclude<keyof D, keyof CounterRecord> & string]?: number };

const counterId = (organizationId: string, shard: number): string => `${organizationId}:${shard}`;

/** The sum of one counter over its shards. One that a release before it wrote is absent in their records, and is 0. */
export const sumOf = <D extends CounterRecord>(records: readonly D[], counter: keyof Counters<D>): number =>
  records.reduce((sum, record) => sum + valueOf(record, counter), 0);
const valueOf = (record: CounterRecord, counter: string): number =>
  (record as unknown as Record<string, number | undefined>)[counter] ?? 0;

/** The organization's records, in the order of their shards. Makes all of them, with zeros, when there are none. */
export async function counterRecords<D extends CounterRecord>(
  store: Store,
  collection: Collection<D>,
  organizationId: string,
  { shards, zeros }: { shards: number; zeros: Required<Counters<D>> },
): Promise<D[]> {
  const read = (): Promise<D[]> => store.find(organizationId, collection, {}, { sort: [['k', 'asc']] });
  const present = await read();
  if (present.length > 0) return present;
  const records = Array.from(
    { length: shards },
    (_, k) => ({ _id: counterId(organizationId, k), organizationId, k, ...zeros }) as unknown as D,
  );
  await store
    .apply(
      organizationId,
      records.map((record) => insert(collection, record)),
    )
    .catch((error: unknown) => {
      if (!(error instanceof DuplicateKeyError)) throw error;
    });
  return read();
}

/** Changes counters without a limit. The records must exist. @param shard that the batch may write */
export const countOp = <D extends CounterRecord>(
  collection: Collection<D>,
  organizationId: string,
  shard: number,
  by: Counters<D>,
): Op => update<CounterRecord>(collection as never, { _id: counterId(organizationId, shard) }, { increment: by });

/**
 * Raises counters within their caps, which concurrent batches together never exceed: each cap is divided among the
 * shards, and the ops expect that every record stays within its share. What does not fit into the share of `shard` is
 * counted in other records. The caller has checked that the sums leave room.
 * @param records all of the organization, as they were read
 * @param shard that the batch may write
 */
export function countWithinOps<D extends CounterRecord>(
  collection: Collection<D>,
  records: readonly D[],
  shard: number,
  by: Counters<D>,
  caps: Counters<D>,
): Op[] {
  const changes = new Map<D, { where: Record<string, unknown>; increment: Record<string, number> }>();
  for (const [counter, growth] of Object.entries(by) as [keyof Counters<D>, number][]) {
    const cap = growth > 0 ? caps[counter] : undefined;
    const shareOf = ({ k }: D): number => (cap === undefined ? Infinity : Math.floor((cap + k) / records.length));
    for (const { record, part } of partsOf(records, shard, growth, (one) => shareOf(one) - valueOf(one, counter))) {
      const change = changes.get(record) ?? { where: {}, increment: {} };
      changes.set(record, change);
      change.increment[counter] = part;
      // No number is above or below an absent counter, so the batch expects it to be still absent.
      if (cap !== undefined) change.where[counter] = counter in record ? { lte: shareOf(record) - part } : null;
    }
  }
  return [...changes].map(([{ _id }, { where, increment }]) =>
    update<CounterRecord>(collection as never, { _id, ...where }, { increment }),
  );
}

/** Which records count which part of a growth: one alone if it can, preferably that of `shard`. */
function partsOf<D extends CounterRecord>(
  records: readonly D[],
  shard: number,
  growth: number,
  roomOf: (record: D) => number,
): { record: D; part: number }[] {
  const others = records.filter(({ k }) => k !== shard);
  const start = Math.floor(Math.random() * others.length);
  const inOrder = [records[shard]!, ...others.slice(start), ...others.slice(0, start)];
  const one = inOrder.find((record) => roomOf(record) >= growth);
  if (one) return [{ record: one, part: growth }];
  const parts: { record: D; part: number }[] = [];
  let rest = growth;
  for (const record of inOrder) {
    const part = Math.min(rest, roomOf(record));
    if (part <= 0) continue;
    parts.push({ record, part });
    rest -= part;
  }
  assert.equal(rest, 0, 'the caps leave no room for what is to be counted');
  return parts;
}
