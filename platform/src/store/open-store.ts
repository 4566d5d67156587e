import { ServiceError } from '../core/errors.ts';
import { checkOp } from './checks.ts';
import { applyVersioned, inPresentVersion, migrate } from './document-versions.ts';
import type { Engine } from './engine.ts';
import type { Collection, FindOptions, Op, OpenStore, PlatformStore, Store } from './store.ts';
import { tracedEngine } from './traced-engine.ts';
import { scopedFilter, scopedOp } from './tenancy.ts';
import { makeTurns, type Turns } from './turns.ts';

type Filter = Readonly<Record<string, unknown>>;

/** @throws TypeError when two different collections have the same name */
export function checkCollectionNames(collections: readonly Collection<never>[]): void {
  for (const one of collections)
    if (collections.some((other) => other.name === one.name && other !== one))
      throw new TypeError(`two collections are named ${one.name}`);
}

/** Makes the store of an engine that was opened with these collections: adds checks, tenancy and document versions. */
export function openStoreOn(opened: Engine, collections: readonly Collection<never>[]): OpenStore {
  const engine = tracedEngine(opened);
  const names = new Set(collections.map(({ name }) => name));
  const turnsOf = makeTurns();
  const ofPlatform = turnsOf('');
  let closed = false;

  function checkOpen({ name }: { readonly name: string }): void {
    if (closed) throw new ServiceError('UNAVAILABLE', 'The document store is closed');
    if (!names.has(name)) throw new TypeError(`the store was not opened with the collection ${name}`);
  }

  async function find<D>(
    collection: { readonly name: string },
    filter: Filter,
    options: FindOptions<D> = {},
    turns = ofPlatform,
  ): Promise<D[]> {
    checkOpen(collection);
    const found = await engine.find(collection as Collection<never>, filter, options, turns);
    return found.map((document) => inPresentVersion(collection as Collection<never>, document as never) as D);
  }

  async function count(
    collection: { readonly name: string },
    filter: Filter,
    { limit }: { limit?: number | undefined } = {},
    turns = ofPlatform,
  ): Promise<number> {
    checkOpen(collection);
    return engine.count(collection as Collection<never>, filter, limit, turns);
  }

  async function sum(collection: Collection<never>, filter: Filter, field: string, turns: Turns): Promise<number> {
    checkOpen(collection);
    if (collection.columns[field] !== 'number') throw new TypeError(`${field} is no number of ${collection.name}`);
    return engine.sum(collection, filter, field, turns);
  }

  async function apply(ops: readonly Op[]): Promise<void> {
    for (const op of ops) {
      checkOpen(op.collection);
      checkOp(op);
    }
    if (ops.length > 0) await applyVersioned(engine, ops);
  }

  const platformStore: PlatformStore = {
    findOne: async (collection, filter) => (await find<never>(collection, filter, { limit: 1 }))[0],
    find: async (collection, filter, options) => find(collection, filter, options),
    count: async (collection, filter, options) => count(collection, filter, options),
    apply,
    now: () => engine.now(),
  };
  const store: Store = {
    findOne: async (organizationId, collection, filter, { maxBytes } = {}) => {
      const where = scopedFilter(organizationId, collection, filter);
      return (await find<never>(collection, where, { limit: 1, maxBytes }, turnsOf(organizationId)))[0];
    },
    find: async (organizationId, collection, filter, options) =>
      find(collection, scopedFilter(organizationId, collection, filter), options, turnsOf(organizationId)),
    count: async (organizationId, collection, filter) =>
      count(collection, scopedFilter(organizationId, collection, filter), {}, turnsOf(organizationId)),
    sum: async (organizationId, collection, filter, field) =>
      sum(collection, scopedFilter(organizationId, collection, filter), field, turnsOf(organizationId)),
    apply: async (organizationId, ops) => apply(ops.map((op) => scopedOp(organizationId, op))),
  };
  return {
    store,
    platformStore,
    counterShards: engine.counterShards,
    exclusive: engine.exclusive,
    ...(engine.cutBackLog && { cutBackLog: engine.cutBackLog }),
    migrate: (signal) => migrate(engine, collections, signal),
    async close() {
      if (closed) return;
      closed = true;
      await engine.close();
    },
  };
}
