import type { AnyBulkWriteOperation, ClientSession, Db, UpdateFilter } from 'mongodb';
import { rejectionOf } from './errors.ts';
import { mongoFilter, type Stored } from './filter.ts';
import { parseJson } from '../../core/parse-json.ts';
import { ExpectationFailedError, type Changes, type Collection, type Document, type Op } from '../store.ts';

/** Sends one command of a batch. */
export type Command = (session: ClientSession) => Promise<unknown>;

/** An operation as it is sent, with its position in the batch. Holds nothing that the caller may change. */
interface Write {
  readonly index: number;
  readonly kind: Op['kind'];
  readonly collection: Collection<never>;
  /** It need not find its document; an insert finds none. */
  readonly optional: boolean;
  /** Of an optional removal by `_id` alone. */
  readonly removedId?: string;
  readonly operation: AnyBulkWriteOperation<Stored>;
}

/** Several operations of one command are expected to find their documents, and not all did. */
export class UnnamedExpectationError extends Error {
  override readonly name = 'UnnamedExpectationError';
}

/**
 * The commands of a batch, in its order.
 * @throws TypeError on a bad filter
 */
export function commandsOf(db: Db, ops: readonly Op[]) {
  const writes = ops.map(writeOf);
  return {
    /**
     * As few as possible: consecutive operations of one kind on one collection are one command. MongoDB says how many
     * documents a command found, not which, so an expectation that failed in a longer one is an
     * UnnamedExpectationError.
     */
    few: groupsOf(writes).map((group) => commandOf(db, group)),
    /** One for each operation. An expectation that failed is an ExpectationFailedError. */
    single: writes.map((write) => commandOf(db, [write])),
  };
}

function writeOf(op: Op, index: number): Write {
  const { kind, collection } = op;
  if (op.kind === 'insert')
    return {
      index,
      kind,
      collection,
      optional: true,
      operation: { insertOne: { document: copy(op.document) as never } },
    };
  const filter = mongoFilter(op.where);
  const { optional } = op;
  if (op.kind === 'update')
    return { index, kind, collection, optional, operation: { updateOne: { filter, update: mongoChange(op.changes) } } };
  const { _id: id } = op.where as { _id?: unknown };
  const byId = optional && Object.keys(op.where).length === 1 && typeof id === 'string';
  return { index, kind, collection, optional, ...(byId && { removedId: id }), operation: { deleteOne: { filter } } };
}

/** The driver reads a document when it sends it; the caller may have changed it by then. */
const copy = (plain: object): object => parseJson(JSON.stringify(plain)) as object;

function mongoChange({ set = {}, increment = {} }: Changes<Document>): UpdateFilter<Stored> {
  // An update that changes nothing is not a write for MongoDB, so a concurrent transaction could change the document
  // that this batch expects as it is. That is why every update increments `writes`. An empty $set is an error before
  // MongoDB 5.
  return { ...(Object.keys(set).length > 0 && { $set: copy(set) }), $inc: { ...increment, writes: 1 } };
}

function groupsOf(writes: readonly Write[]): Write[][] {
  const groups: Write[][] = [];
  for (const write of writes) {
    const group = groups.at(-1);
    if (group && goTogether(group[0]!, write)) group.push(write);
    else groups.push([write]);
  }
  return groups;
}

const goTogether = (one: Write, other: Write): boolean =>
  one.kind === other.kind &&
  one.collection === other.collection &&
  one.optional === other.optional &&
  (one.removedId === undefined) === (other.removedId === undefined);

function commandOf(db: Db, group: readonly Write[]): Command {
  const [{ index, kind, collection: declared, optional, operation }] = group as readonly [Write];
  const collection = db.collection<Stored>(declared.name);
  const removedIds = group.flatMap(({ removedId }) => removedId ?? []);
  const operations = group.map((write) => write.operation);

  /** Resolves to the number of documents found. A command of one operation is one that the driver repeats. */
  async function send(session: ClientSession): Promise<number> {
    if (operations.length > 1 && removedIds.length > 0)
      return (await collection.deleteMany({ _id: { $in: removedIds } }, { session })).deletedCount;
    if (operations.length > 1) {
      const { matchedCount, deletedCount } = await collection.bulkWrite(operations, { session, ordered: true });
      return matchedCount + deletedCount;
    }
    if ('updateOne' in operation) {
      const { filter, update } = operation.updateOne;
      return (await collection.updateOne(filter, update, { session })).matchedCount;
    }
    if ('deleteOne' in operation)
      return (await collection.deleteOne(operation.deleteOne.filter, { session })).deletedCount;
    if ('insertOne' in operation) await collection.insertOne(operation.insertOne.document, { session });
    return 0;
  }

  return async (session) => {
    const found = await send(session).catch((error: unknown) => {
      throw rejectionOf(error, declared) ?? error;
    });
    if (optional || found === group.length) return;
    throw group.length === 1
      ? new ExpectationFailedError(index, declared.name)
      : new UnnamedExpectationError(`${found} of ${group.length} expectations of a ${kind} held in ${declared.name}`);
  };
}
