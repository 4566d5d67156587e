import type { ClientSession, Db, UpdateFilter } from 'mongodb';
import { refusalOf } from './faults.ts';
import { mongoFilter, type Stored } from './filter.ts';
import { ExpectationFailedError, type Changes, type Collection, type Document, type Op } from '../store.ts';

/** One command of a batch. */
export type Step = (session: ClientSession) => Promise<unknown>;

/**
 * The commands of a batch, in its order; inserts of one collection that follow each other are one, so are removals by id that
 * expect nothing. @throws TypeError on a bad filter
 */
export function stepsOf(db: Db, ops: readonly Op[]): Step[] {
  const steps: Step[] = [];
  for (let index = 0; index < ops.length;) {
    const op = ops[index]!;
    // alone it stays a command that the driver repeats
    if (ops.length > 1 && removesById(op)) {
      const ids: string[] = [];
      for (
        let next: Op | undefined = op;
        next !== undefined && removesById(next) && next.collection === op.collection;
        next = ops[++index]
      )
        ids.push(next.where._id);
      const to = db.collection<Stored>(op.collection.name);
      steps.push((session) => to.deleteMany({ _id: { $in: ids } }, { session }));
    } else if (op.kind !== 'insert') steps.push(changeStep(db, op, index++));
    else {
      const documents: Stored[] = [];
      for (
        let next: Op | undefined = op;
        next?.kind === 'insert' && next.collection === op.collection;
        next = ops[++index]
      )
        documents.push(copy(next.document) as Stored);
      steps.push(insertStep(db, op.collection, documents));
    }
  }
  return steps;
}

type RemoveById = Extract<Op, { kind: 'remove' }> & { where: { _id: string } };
const removesById = (op: Op): op is RemoveById =>
  op.kind === 'remove' &&
  op.optional &&
  Object.keys(op.where).length === 1 &&
  typeof (op.where as { _id?: unknown })._id === 'string';

/** The driver reads a document when it sends it; until then it is the caller's. */
const copy = (plain: object): object => JSON.parse(JSON.stringify(plain));

function insertStep(db: Db, collection: Collection<never>, documents: Stored[]): Step {
  const to = db.collection<Stored>(collection.name);
  return refusing(collection, (session) =>
    documents.length === 1
      ? to.insertOne(documents[0]!, { session })
      : to.insertMany(documents, { session, ordered: true }),
  );
}

function changeStep(db: Db, op: Exclude<Op, { kind: 'insert' }>, index: number): Step {
  const where = mongoFilter(op.where);
  const to = db.collection<Stored>(op.collection.name);
  const change = op.kind === 'update' ? mongoChange(op.changes) : undefined;
  return refusing(op.collection, async (session) => {
    const found =
      change === undefined
        ? (await to.deleteOne(where, { session })).deletedCount
        : (await to.updateOne(where, change, { session })).matchedCount;
    if (found === 0 && !op.optional) throw new ExpectationFailedError(index, op.collection.name);
  });
}

function mongoChange({ set = {}, increment = {} }: Changes<Document>): UpdateFilter<Stored> {
  // MongoDB does not write what changes nothing, and then another transaction could change the document that this one's batch
  // expects: so every update counts. An empty $set is an error before MongoDB 5.
  return { ...(Object.keys(set).length > 0 && { $set: copy(set) }), $inc: { ...increment, writes: 1 } };
}

const refusing =
  (collection: Collection<never>, run: Step): Step =>
  (session) =>
    run(session).catch((error: unknown) => {
      throw refusalOf(error, collection) ?? error;
    });
