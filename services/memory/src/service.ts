import { MemoryServiceService } from 'proto/memory/v1/memory.ts';
import { flushDenials, denialsJob } from 'platform/events/denials-job.ts';
import type { Program } from 'platform/service/run.ts';
import { served } from 'platform/rpc/server.ts';
import { SOURCE } from './events.ts';
import { config } from './config.ts';
import { openDeps, type Deps } from './deps.ts';
import { relay } from './jobs/relay.ts';
import { createMemoryObject } from './objects/create-memory-object.ts';
import { deleteMemoryObject } from './objects/delete-memory-object.ts';
import { getMemoryObject } from './objects/get-memory-object.ts';
import { listMemoryObjects } from './objects/list-memory-objects.ts';
import { updateMemoryObject } from './objects/update-memory-object.ts';
import { noted } from './denials.ts';
import { createMemoryType } from './types/create-memory-type.ts';
import { deleteMemoryType } from './types/delete-memory-type.ts';
import { getMemoryType } from './types/get-memory-type.ts';
import { listMemoryTypes } from './types/list-memory-types.ts';
import { updateMemoryType } from './types/update-memory-type.ts';

/** Denials counted in memory, on their way to the audit trail. */
const refusalsOf = ({ denials, platformStore }: Deps) => ({ denials, platformStore, source: SOURCE });

export const program: Program<typeof config, Deps> = {
  name: 'memory',
  config,
  calls: [],
  openDeps,
  services: (deps) => [
    served(MemoryServiceService, {
      createMemoryType: (request, context) => noted(deps, context, createMemoryType(deps, request, context)),
      listMemoryTypes: (request, context) => listMemoryTypes(deps, request, context),
      getMemoryType: (request, context) => getMemoryType(deps, request, context),
      updateMemoryType: (request, context) => noted(deps, context, updateMemoryType(deps, request, context)),
      deleteMemoryType: (request, context) => deleteMemoryType(deps, request, context),
      createMemoryObject: (request, context) => noted(deps, context, createMemoryObject(deps, request, context)),
      listMemoryObjects: (request, context) => listMemoryObjects(deps, request, context),
      getMemoryObject: (request, context) => getMemoryObject(deps, request, context),
      updateMemoryObject: (request, context) => updateMemoryObject(deps, request, context),
      deleteMemoryObject: (request, context) => deleteMemoryObject(deps, request, context),
    }),
  ],
  jobs: (deps) => [relay(deps), denialsJob({ ...refusalsOf(deps), intervalMs: deps.config.REFUSALS_INTERVAL_MS })],
  async close(deps) {
    await flushDenials(refusalsOf(deps));
    await deps.counterShards
      .close()
      .catch((error: unknown) => deps.log.warn({ error }, 'could not give back the slot of rows'));
  },
};
