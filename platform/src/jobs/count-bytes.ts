import { retryOnConflict } from '../store/retry-on-conflict.ts';
import {
  update,
  type Changes,
  type Collection,
  type Expectation,
  type Op,
  type OrganizationDocument,
  type PlatformStore,
} from '../store/store.ts';
import type { Job } from './jobs.ts';

/** A document that an organization's byte counter counts. */
export interface CountedDocument extends OrganizationDocument {
  /** What the counter holds of it. Absent while it is not counted: a release before byte counts wrote it. */
  bytes?: number;
}

/** A collection of counted documents, with the index that the job needs: `platformIndexes: [{ fields: ['bytes'] }]`. */
export interface CountedCollection<D extends CountedDocument> {
  collection: Collection<D>;
  bytesOf(document: D): number;
  /** That nobody has changed the document since it was read. */
  asRead(document: D): Expectation<D>;
}

interface Needs {
  platformStore: PlatformStore;
  counted: readonly CountedCollection<never>[];
  /** Calls `write` with the ops that count these bytes of the organization; no limit applies. */
  count(organizationId: string, bytes: number, write: (ops: readonly Op[]) => Promise<void>): Promise<void>;
}

/** The documents may hold large texts, and a batch is in memory. */
const BATCH = 20;

/**
 * Counts the documents that are not counted yet. A document and what it adds to the counter are written in one batch,
 * which expects the document as it was read: whenever a process ends, a document is counted once or not yet.
 */
export const countBytesJob = ({ platformStore, counted, count }: Needs): Job => ({
  name: 'count-bytes',
  description: 'Counts the stored bytes of documents that a release before byte counts wrote.',
  // Repeated, since replicas of that release may still write.
  intervalMs: 60_000,
  async run(signal) {
    let total = 0;
    for (const { collection, bytesOf, asRead } of counted as readonly CountedCollection<CountedDocument>[]) {
      const countBatch = async (): Promise<number> => {
        const batch = await platformStore.find(collection, { bytes: null }, { limit: BATCH });
        for (const [organizationId, documents] of Map.groupBy(batch, (document) => document.organizationId)) {
          const ops = documents.map((document) => {
            const set = { bytes: bytesOf(document) } as Changes<CountedDocument>['set'];
            return update(collection, { ...asRead(document), bytes: null }, { set });
          });
          const bytes = documents.reduce((sum, document) => sum + bytesOf(document), 0);
          await count(organizationId, bytes, (counting) => platformStore.apply([...ops, ...counting]));
        }
        return batch.length;
      };
      for (let size = BATCH; size === BATCH && !signal.aborted; total += size)
        size = await retryOnConflict(signal, countBatch);
    }
    return total;
  },
});
