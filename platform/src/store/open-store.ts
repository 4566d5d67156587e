import { ServiceError } from '../core/errors.ts';
import { checkOp } from './checks.ts';
import type { Collection, FindOptions, Op, OpenStore, PlatformStore, Store } from './store.ts';
import { applyStamped, asKnown, migrate } from './document-versions.ts';
import { confined, within } from './tenancy.ts';

type Filter = Readonly<Record<string, unknown>>;

/** What an engine does by itself; it knows of no organizations. Collections, operations and openness are checked before. */
export interface Engine extends Pick<OpenStore, 'counterShards' | 'exclusive' | 'close'> {
  find(collection: Collection<never>, filter: Filter, options: FindOptions<never>): Promise<unknown[]>;
  count(collection: Collection<never>, filter: Filter): Promise<number>;
  /** At least one operation. Takes what it needs of `ops` before its first await. */
  apply(ops: readonly Op[]): Promise<void>;
  now(): Promise<number>;
}

/** @throws TypeError when two different collections have one name */
export function checkNames(collections: readonly Collection<never>[]): void {
  for (const one of collections)
    if (collections.some((other) => other.name === one.name && other !== one))
      throw new TypeError(`two collections are named ${one.name}`);
}

/** The store over an engine that was opened with these collections. */
export function storeOver(engine: Engine, collections: readonly Collection<never>[]): OpenStore {
  const names = new Set(collections.map(({ name }) => name));
  let closed = false;

  function checkOpen({ name }: { readonly name: string }): void {
    if (closed) throw new ServiceError('UNAVAILABLE', 'The document store is closed');
    if (!names.has(name)) throw new TypeError(`the store was not opened with the collection ${name}`);
  }

  async function find<D>(
    collection: { readonly name: string },
    filter: Filter,
    options: FindOptions<D> = {},
  ): Promise<D[]> {
    checkOpen(collection);
    const found = await engine.find(collection as Collection<never>, filter, options);
    return found.map((document) => asKnown(collection as Collection<never>, document as never) as D);
  }

  async function count(collection: { readonly name: string }, filter: Filter): Promise<number> {
    checkOpen(collection);
    return engine.count(collection as Collection<never>, filter);
  }

  async function apply(ops: readonly Op[]): Promise<void> {
    for (const op of ops) {
      checkOpen(op.collection);
      checkOp(op);
    }
    if (ops.length > 0) await applyStamped(engine, ops);
  }

  const platformStore: PlatformStore = {
    findOne: async (collection, filter) => (await find<never>(collection, filter, { limit: 1 }))[0],
    find,
    count,
    apply,
    now: () => engine.now(),
  };
  const store: Store = {
    findOne: async (organizationId, collection, filter) =>
      (await find<never>(collection, within(organizationId, collection, filter), { limit: 1 }))[0],
    find: async (organizationId, collection, filter, options) =>
      find(collection, within(organizationId, collection, filter), options),
    count: async (organizationId, collection, filter) => count(collection, within(organizationId, collection, filter)),
    apply: async (organizationId, ops) => apply(ops.map((op) => confined(organizationId, op))),
  };
  return {
    store,
    platformStore,
    counterShards: engine.counterShards,
    exclusive: engine.exclusive,
    migrate: (signal) => migrate(engine, collections, signal),
    async close() {
      if (closed) return;
      closed = true;
      await engine.close();
    },
  };
}
