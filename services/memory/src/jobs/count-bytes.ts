import { countBytesJob, type CountedCollection } from 'platform/jobs/count-bytes.ts';
import type { Job } from 'platform/jobs/jobs.ts';
import type { Deps } from '../deps.ts';
import { objectBytes } from '../objects/rules.ts';
import { asRead as objectAsRead, OBJECTS, type MemoryObjectRecord } from '../objects/store.ts';
import { typeBytes } from '../types/rules.ts';
import { asRead as typeAsRead, TYPES, type MemoryTypeRecord } from '../types/store.ts';

const types: CountedCollection<MemoryTypeRecord> = { collection: TYPES, bytesOf: typeBytes, asRead: typeAsRead };
const objects: CountedCollection<MemoryObjectRecord> = {
  collection: OBJECTS,
  bytesOf: objectBytes,
  asRead: objectAsRead,
};

export const memoryBytesJob = ({
  platformStore,
  usage,
  counterShards,
}: Pick<Deps, 'platformStore' | 'usage' | 'counterShards'>): Job =>
  countBytesJob({
    platformStore,
    counted: [types, objects],
    count: (organizationId, bytes, write) =>
      counterShards.withShard(organizationId, new AbortController().signal, async (shard) =>
        write(await usage.countStored(organizationId, shard, bytes)),
      ),
  });
