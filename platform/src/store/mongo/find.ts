import { BSON, type Collection } from 'mongodb';
import { requireFit, type InTurn } from '../reply-limit.ts';
import type { FindOptions } from '../store.ts';
import { mongoFind, type Stored } from './filter.ts';

/** The driver parses a batch when it arrives from the server, so batches of large documents have this size. */
const BATCH_BYTES = 262_144;

/** Runs a command that only reads, with the timeout and the errors of the store. */
export type Read = <T>(command: () => Promise<T>) => Promise<T>;

/**
 * Finds the documents. With `maxBytes` the server measures a list before anything of it is sent, which takes a command
 * more, and large documents are read in turn.
 * @throws ServiceError REPLY_TOO_LARGE
 */
export async function findDocuments(
  collection: Collection<Stored>,
  filter: Readonly<Record<string, unknown>>,
  options: FindOptions<never>,
  read: Read,
  inTurn: InTurn,
): Promise<Stored[]> {
  const { where, ...order } = mongoFind(filter, options);
  const { limit, maxBytes = Infinity } = options;
  const readAll = () => read(() => collection.find(where, order).toArray());
  if (maxBytes === Infinity) return readAll();
  if (limit === 1) {
    const documents = await readAll();
    for (const document of documents) requireFit(BSON.calculateObjectSize(document), maxBytes);
    return documents;
  }

  const projection = { _id: 1, bytes: { $bsonSize: '$$ROOT' } };
  const found = await read(() => collection.find(where, { ...order, projection }).toArray());
  const sizes = found.map(({ bytes }) => Number(bytes));
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  requireFit(bytes, maxBytes);
  if (bytes <= BATCH_BYTES) return readAll();

  const cursor = collection.find(where, { ...order, batchSize: Math.ceil(BATCH_BYTES / Math.max(...sizes)) });
  const documents: Stored[] = [];
  try {
    while (await read(() => cursor.hasNext()))
      documents.push(...(await inTurn(() => cursor.readBufferedDocuments(1) as Stored[])));
    return documents;
  } finally {
    await cursor.close();
  }
}
