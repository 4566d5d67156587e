import { checkDocument, type Changes, type Collection, type Document, type Op } from './store.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Refuses an operation that an engine must not begin; filters are checked where they are translated. @throws TypeError */
export function checkOp(op: Op): void {
  if (op.kind === 'insert') return checkInsert(op.collection, op.document as unknown as Fields);
  if (typeof op.where._id !== 'string') throw new TypeError('an update or remove names one document by _id');
  if (op.kind === 'update') checkChanges(op.collection, op.changes);
}

/** Written and read by the store alone. */
const OWN = ['shape', 'writes'];

function checkInsert(collection: Collection<never>, document: Fields): void {
  checkDocument(document);
  checkNotOwn(document);
  for (const field of ['_id', ...(collection.scope === 'organization' ? ['organizationId'] : [])]) {
    if (typeof document[field] !== 'string' || document[field] === '')
      throw new TypeError(`${collection.name}: ${field} must be text`);
  }
  for (const field of uniqueFields(collection)) checkUnique(collection, field, document[field]);
}

function checkChanges(collection: Collection<never>, { set = {}, increment = {} }: Changes<Document>): void {
  checkDocument(set);
  checkDocument(increment);
  checkNotOwn({ ...set, ...increment });
  for (const [field, by] of Object.entries(increment)) {
    if (!Number.isFinite(by)) throw new TypeError(`${field} is incremented by a finite number`);
    if (field in set) throw new TypeError(`${field} is both set and incremented`);
  }
  for (const field of ['_id', 'organizationId'])
    if (field in set || field in increment) throw new TypeError(`${field} cannot change`);
  for (const field of uniqueFields(collection))
    if (field in set) checkUnique(collection, field, (set as Fields)[field]);
}

function checkNotOwn(fields: Fields): void {
  for (const field of OWN) if (field in fields) throw new TypeError(`${field} is a field of the store's own`);
}

const uniqueFields = ({ indexes, platformIndexes }: Collection<never>): readonly string[] =>
  [...indexes, ...platformIndexes].filter((index) => index.unique).flatMap((index) => index.fields);

function checkUnique(collection: Collection<never>, field: string, value: unknown): void {
  if (!['string', 'number', 'boolean'].includes(typeof value))
    throw new TypeError(`${collection.name}: the unique field ${field} must be text, a number or a boolean`);
}
