import {
  CreateMemoryObjectRequest,
  CreateMemoryTypeRequest,
  ListMemoryObjectsRequest,
  MemoryServiceService,
  UpdateMemoryObjectRequest,
  UpdateMemoryTypeRequest,
  type MemoryObject,
  type MemoryType,
} from 'proto/memory/v1/memory.ts';
import type { Clock } from 'platform/core/clock.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { newId } from 'platform/core/ids.ts';
import type { Principal } from 'platform/core/principal.ts';
import { eventually } from 'platform/service/test-end.ts';
import { principalWith, serverToken, startProgram } from 'platform/service/testing.ts';
import { programEngines } from '../../../test/support/shared-engines.ts';
import { program } from '../src/service.ts';

export const SCHEMA = { type: 'object', properties: { price: { type: 'number' } }, required: ['price'] };

/** A user of the organization, without roles. */
export const userOf = (organizationId: string, given: Partial<Principal> = {}): Principal =>
  principalWith({ kind: 'USER', organizationId, subject: newId(), name: 'Ada', tier: 'enterprise', ...given });

/** A run of an agent whose definition lists these memory types. */
export const executionOf = (organizationId: string, memoryTypes: string[], given: Partial<Principal> = {}): Principal =>
  principalWith({
    kind: 'AGENT_EXECUTION',
    organizationId,
    subject: newId(),
    name: 'keeper',
    memoryTypes,
    ...given,
  });

/** The error of a call that must fail with a ServiceError. */
export async function errorOf(
  work: Promise<unknown>,
): Promise<Pick<ServiceError, 'reason' | 'message' | 'facts' | 'details'>> {
  const error: unknown = await work.then(
    () => new Error('the call did not fail'),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof ServiceError)) throw error;
  const { reason, message, facts, details } = error;
  return { reason, message, facts, details };
}
/** The reason of the error and the first path that it names. */
export async function reasonAndPathOf(work: Promise<unknown>): Promise<[reason: string, path: string | undefined]> {
  const { reason, details } = await errorOf(work);
  return [reason, details[0]?.path];
}

/**
 * Starts the real service over real gRPC on a store of its own (two replicas on shared engines), and clients that have
 * the identities of the gateway and of agents.
 */
export async function startMemory(env: Record<string, string> = {}, clock?: Clock) {
  const engines = programEngines();
  const running = await startProgram(program, { ...engines.env, ...env }, clock, engines.replicas);
  const openClients = () => ({
    gateway: running.client(MemoryServiceService, 'gateway'),
    agents: running.client(MemoryServiceService, 'agents'),
  });
  let clients = openClients();

  /** The RPCs as one principal calls them. They take ids and members, and return messages. */
  function as(principal: Principal) {
    const options = () => running.as(principal);
    const client = () => clients[principal.kind === 'AGENT_EXECUTION' ? 'agents' : 'gateway'];
    return {
      principal,
      createType: async (given: Parameters<typeof CreateMemoryTypeRequest.fromPartial>[0] = {}) =>
        client().createMemoryType(
          CreateMemoryTypeRequest.fromPartial({ type: `t${newId()}`, jsonSchema: JSON.stringify(SCHEMA), ...given }),
          options(),
        ),
      type: async (given: Parameters<typeof CreateMemoryTypeRequest.fromPartial>[0] = {}): Promise<MemoryType> =>
        (await as(principal).createType(given)).memoryType!,
      getType: async (id: string): Promise<MemoryType> => (await client().getMemoryType({ id }, options())).memoryType!,
      listTypes: async (given: { page?: number; pageSize?: number } = {}): Promise<MemoryType[]> =>
        (await client().listMemoryTypes(given, options())).items,
      /** The new type of a PUT of `body`, with an update mask that names its members, as the gateway does. */
      putType: async (id: string, body: Partial<UpdateMemoryTypeRequest>): Promise<MemoryType> =>
        (await as(principal).changeType(id, body)).memoryType!,
      /** The whole answer of a PUT, also of one with dryRun or force. */
      changeType: async (id: string, body: Partial<UpdateMemoryTypeRequest>) => {
        const updateMask = Object.keys(body).filter((name) => name !== 'dryRun' && name !== 'force');
        const request = UpdateMemoryTypeRequest.fromPartial({ updateMask, ...body, pathId: id });
        for (;;) {
          const answer = await client().updateMemoryType(request, options());
          if (answer.outcome !== 'ACCEPTED' || env.MEMORY_CHANGE_WAIT_MS !== undefined) return answer;
          // the machine stalls; a change that is refused, and a dry run, change nothing and can be repeated
          const memoryType = await as(principal).endedChange(id);
          if (memoryType.change!.action === 'update' && memoryType.change!.state === 'done')
            return { ...answer, outcome: 'DONE', memoryType };
        }
      },
      /** The type, when no change of it is under way. */
      endedChange: (id: string): Promise<MemoryType> =>
        eventually(async () => {
          const type = await as(principal).getType(id);
          return type.change?.state !== 'running' && type;
        }),
      cancelChange: (id: string) => client().cancelMemoryTypeChange({ id }, options()),
      deleteType: async (id: string, ifMatch?: string) =>
        (await client().deleteMemoryType({ id, ifMatch }, options())).deleted!,
      cascadeType: (id: string) => client().deleteMemoryType({ id, cascade: true }, options()),
      /** Resolves when a type and its objects are deleted. While the machine stalls, the answer comes before that. */
      async cascadeToEnd(id: string): Promise<void> {
        const { outcome, deleted } = await as(principal).cascadeType(id);
        if (outcome === 'ACCEPTED') expect((await errorOf(as(principal).endedChange(id))).reason).toBe('NOT_FOUND');
        else expect({ outcome, deleted }).toEqual({ outcome: 'DONE', deleted: { success: true, id } });
      },
      createObject: (given: Partial<CreateMemoryObjectRequest>) =>
        client().createMemoryObject(
          CreateMemoryObjectRequest.fromPartial({ key: newId(), content: '{"price":1}', ...given }),
          options(),
        ),
      object: async (given: Partial<CreateMemoryObjectRequest>): Promise<MemoryObject> =>
        (await as(principal).createObject(given)).memoryObject!,
      getObject: async (id: string): Promise<MemoryObject> =>
        (await client().getMemoryObject({ id }, options())).memoryObject!,
      objectTag: async (id: string): Promise<string> => (await client().getMemoryObject({ id }, options())).etag!,
      listObjects: (given: Partial<ListMemoryObjectsRequest> = {}) =>
        client().listMemoryObjects(ListMemoryObjectsRequest.fromPartial(given), options()),
      patchObject: async (id: string, body: Partial<UpdateMemoryObjectRequest>): Promise<MemoryObject> =>
        (
          await client().updateMemoryObject(
            UpdateMemoryObjectRequest.fromPartial({ updateMask: Object.keys(body), ...body, pathId: id }),
            options(),
          )
        ).memoryObject!,
      deleteObject: (id: string, ifMatch?: string) => client().deleteMemoryObject({ id, ifMatch }, options()),
    };
  }
  return {
    running,
    as,
    /** The RPCs as a server token of a new organization calls them. */
    organization: (given: Partial<Principal> = {}) => as(serverToken(newId(), given)),
    async restart() {
      await running.restart();
      clients = openClients();
    },
    stop: () => running.stop(),
  };
}
export type Memory = Awaited<ReturnType<typeof startMemory>>;
export type Caller = ReturnType<Memory['as']>;
