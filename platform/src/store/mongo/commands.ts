import type { ClientSession, Db, UpdateFilter } from 'mongodb';
import { rejectionOf } from './errors.ts';
import { mongoFilter, type Stored } from './filter.ts';
import { ExpectationFailedError, type Changes, type Collection, type Document, type Op } from '../store.ts';

/** Sends one command of a batch. */
export type Command = (session: ClientSession) => Promise<unknown>;

/**
 * The commands of a batch, in its order. Consecutive inserts into one collection are one command, and so are
 * consecutive optional removals by `_id` alone. Copies what it needs of `ops`.
 * @throws TypeError on a bad filter
 */
export function commandsOf(db: Db, ops: readonly Op[]): Command[] {
  const commands: Command[] = [];
  for (let index = 0; index < ops.length;) {
    const op = ops[index]!;
    // A single removal stays a deleteOne, which the driver retries.
    if (ops.length > 1 && isRemovalById(op)) {
      const ids: string[] = [];
      for (
        let next: Op | undefined = op;
        next !== undefined && isRemovalById(next) && next.collection === op.collection;
        next = ops[++index]
      )
        ids.push(next.where._id);
      const collection = db.collection<Stored>(op.collection.name);
      commands.push((session) => collection.deleteMany({ _id: { $in: ids } }, { session }));
    } else if (op.kind !== 'insert') commands.push(changeCommand(db, op, index++));
    else {
      const documents: Stored[] = [];
      for (
        let next: Op | undefined = op;
        next?.kind === 'insert' && next.collection === op.collection;
        next = ops[++index]
      )
        documents.push(copy(next.document) as Stored);
      commands.push(insertCommand(db, op.collection, documents));
    }
  }
  return commands;
}

type RemovalById = Extract<Op, { kind: 'remove' }> & { where: { _id: string } };
const isRemovalById = (op: Op): op is RemovalById =>
  op.kind === 'remove' &&
  op.optional &&
  Object.keys(op.where).length === 1 &&
  typeof (op.where as { _id?: unknown })._id === 'string';

/** The driver reads a document when it sends it; the caller may have changed it by then. */
const copy = (plain: object): object => JSON.parse(JSON.stringify(plain));

function insertCommand(db: Db, declared: Collection<never>, documents: Stored[]): Command {
  const collection = db.collection<Stored>(declared.name);
  return withRejections(declared, (session) =>
    documents.length === 1
      ? collection.insertOne(documents[0]!, { session })
      : collection.insertMany(documents, { session, ordered: true }),
  );
}

function changeCommand(db: Db, op: Exclude<Op, { kind: 'insert' }>, index: number): Command {
  const where = mongoFilter(op.where);
  const collection = db.collection<Stored>(op.collection.name);
  const change = op.kind === 'update' ? mongoChange(op.changes) : undefined;
  return withRejections(op.collection, async (session) => {
    const found =
      change === undefined
        ? (await collection.deleteOne(where, { session })).deletedCount
        : (await collection.updateOne(where, change, { session })).matchedCount;
    if (found === 0 && !op.optional) throw new ExpectationFailedError(index, op.collection.name);
  });
}

function mongoChange({ set = {}, increment = {} }: Changes<Document>): UpdateFilter<Stored> {
  // An update that changes nothing is not a write for MongoDB, so a concurrent transaction could change the document
  // that this batch expects as it is. That is why every update increments `writes`. An empty $set is an error before
  // MongoDB 5.
  return { ...(Object.keys(set).length > 0 && { $set: copy(set) }), $inc: { ...increment, writes: 1 } };
}

const withRejections =
  (collection: Collection<never>, command: Command): Command =>
  (session) =>
    command(session).catch((error: unknown) => {
      throw rejectionOf(error, collection) ?? error;
    });
