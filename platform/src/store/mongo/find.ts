import { BSON, type Collection } from 'mongodb';
import { requireFit } from '../reply-limit.ts';
import type { FindOptions } from '../store.ts';
import { DOCUMENT, ENTRIES_A_TURN, PIECE_BYTES, PIECE_DOCUMENTS, type Turns } from '../turns.ts';
import { mongoFilter, mongoFind, type Stored } from './filter.ts';

/** Runs a command that only reads, with the timeout and the errors of the store. */
export type Read = <T>(command: () => Promise<T>) => Promise<T>;

/** How the documents of a collection are read. */
export interface Reading {
  collection: Collection<Stored>;
  filter: Readonly<Record<string, unknown>>;
  read: Read;
  turns: Turns;
}

/** So many documents are counted or added up at once; where there are more, all are in a place of a large read. */
const FEW = 1_000;

/**
 * Finds the documents. What the server passes or sends much of is a large read, of which one organization has few at
 * once: a deep page as a whole, another one after its first documents. With `maxBytes` the server measures a list
 * before anything of it is sent, which takes a command more. Where much arrives, it is read in turn.
 * @throws ServiceError REPLY_TOO_LARGE
 */
export async function findDocuments(reading: Reading, options: FindOptions<never>): Promise<Stored[]> {
  const { filter, turns } = reading;
  return mostPassed(filter, options) > ENTRIES_A_TURN
    ? turns.inPlace(() => find(reading, options, (work) => work()))
    : find(reading, options, turns.inPlace);
}

/** How many entries of an index the server may pass to answer, where the read has a limit. */
function mostPassed(filter: Readonly<Record<string, unknown>>, { skip = 0, limit }: FindOptions<never>): number {
  if (limit === undefined) return 0;
  const lists = Object.values(filter).flatMap((condition) => listIn(condition)?.length ?? []);
  return Math.max(1, ...lists) * (skip + limit) + DOCUMENT * limit;
}

const listIn = (condition: unknown): readonly unknown[] | undefined =>
  condition === null || typeof condition !== 'object' ? undefined : (condition as { in?: readonly unknown[] }).in;

async function find(
  { collection, filter, read, turns }: Reading,
  options: FindOptions<never>,
  inPlace: Turns['inPlace'],
): Promise<Stored[]> {
  const { where, ...order } = mongoFind(filter, options);
  const { limit, maxBytes = Infinity } = options;

  /** The first batch at once, the others in a place. Large documents come in small batches. */
  async function readAll(batchSize: number): Promise<Stored[]> {
    const isSmall = batchSize >= PIECE_DOCUMENTS;
    const cursor = collection.find(where, { ...order, batchSize });
    const documents: Stored[] = [];
    const readBatch = async (): Promise<boolean> => {
      if (!(await read(() => cursor.hasNext()))) return false;
      const count = cursor.bufferedCount();
      const most = isSmall ? count * DOCUMENT : undefined;
      documents.push(...(await turns.inTurn(() => cursor.readBufferedDocuments(count) as Stored[], most)));
      return true;
    };
    try {
      if (!(await readBatch()) || cursor.id?.isZero()) return documents;
      await inPlace(async () => {
        while (await readBatch());
      });
      return documents;
    } finally {
      // the server ends a cursor that nobody reads, so only the read itself can fail
      await cursor.close().catch(() => undefined);
    }
  }

  if (maxBytes === Infinity) return readAll(PIECE_DOCUMENTS);
  if (limit === 1) {
    const documents = await readAll(limit);
    for (const document of documents) requireFit(BSON.calculateObjectSize(document), maxBytes);
    return documents;
  }
  const projection = { _id: 1, bytes: { $bsonSize: '$$ROOT' } };
  const found = await read(() => collection.find(where, { ...order, projection }).toArray());
  const sizes = found.map(({ bytes }) => Number(bytes));
  requireFit(
    sizes.reduce((sum, size) => sum + size, 0),
    maxBytes,
  );
  // The driver parses a batch when it arrives.
  return readAll(Math.min(PIECE_DOCUMENTS, Math.ceil(PIECE_BYTES / Math.max(1, ...sizes))));
}

/** Counts the documents, or adds up a field of them. */
export async function aggregateDocuments(
  { collection, filter, read, turns }: Reading,
  { field, limit = Infinity }: { field?: string; limit?: number | undefined },
): Promise<number> {
  const value = field === undefined ? 1 : `$${field}`;
  async function upTo(most: number): Promise<{ total: number; passed: number }> {
    const stages = [
      { $match: mongoFilter(filter) },
      ...(most === Infinity ? [] : [{ $limit: most }]),
      { $group: { _id: null, total: { $sum: value }, passed: { $sum: 1 } } },
    ];
    const [found] = await read(() => collection.aggregate(stages).toArray());
    return { total: Number(found?.['total'] ?? 0), passed: Number(found?.['passed'] ?? 0) };
  }
  const few = await upTo(Math.min(limit, FEW + 1));
  if (few.passed <= FEW || few.passed === limit) return few.total;
  return (await turns.inPlace(() => upTo(limit))).total;
}
