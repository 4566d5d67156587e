import { MemoryServiceService } from 'proto/memory/v1/memory.ts';
import type { Program } from 'platform/service/program.ts';
import { bind } from 'platform/rpc/call.ts';
import { config } from './config.ts';
import { COLLECTIONS, openDeps, type Deps } from './deps.ts';
import { memoryBytesJob } from './jobs/count-bytes.ts';
import { cancelMemoryTypeChange } from './changes/cancel-memory-type-change.ts';
import { typeChangesJob } from './jobs/type-changes.ts';
import { createMemoryObject } from './objects/create-memory-object.ts';
import { deleteMemoryObject } from './objects/delete-memory-object.ts';
import { getMemoryObject } from './objects/get-memory-object.ts';
import { listMemoryObjects } from './objects/list-memory-objects.ts';
import { updateMemoryObject } from './objects/update-memory-object.ts';
import { createMemoryType } from './types/create-memory-type.ts';
import { deleteMemoryType } from './types/delete-memory-type.ts';
import { getMemoryType } from './types/get-memory-type.ts';
import { listMemoryTypes } from './types/list-memory-types.ts';
import { updateMemoryType } from './types/update-memory-type.ts';

export const program: Program<typeof config, Deps> = {
  name: 'memory',
  config,
  calls: [],
  publishes: ['memory.change.v1', 'audit.v1'],
  openDeps,
  services: (deps) => [
    bind(MemoryServiceService, deps, {
      createMemoryType,
      listMemoryTypes,
      getMemoryType,
      updateMemoryType,
      deleteMemoryType,
      cancelMemoryTypeChange,
      createMemoryObject,
      listMemoryObjects,
      getMemoryObject,
      updateMemoryObject,
      deleteMemoryObject,
    }),
  ],
  jobs: (deps) => [memoryBytesJob(deps), typeChangesJob(deps)],
  copy: { collections: COLLECTIONS },
  interrupt: (deps) => deps.background.stop(),
  async close(deps) {
    await deps.counterShards
      .close()
      .catch((error: unknown) => deps.log.warn({ error }, 'could not release the slot of counter shards'));
  },
};
