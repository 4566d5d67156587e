import { ServiceError } from 'platform/core/errors.ts';
import { newId } from 'platform/core/ids.ts';
import type { CallOptions } from 'platform/rpc/call.ts';
import type { MemoryObject } from 'proto/memory/v1/memory.ts';
import type { Memory } from '../src/tools/memory-operations.ts';

/**
 * Objects of memory within the process of the test, without schemas. Each principal sees the objects of its
 * organization and of the types that it lists. test/api/agent-tools.test.ts uses the real service.
 */
export function memoryDouble() {
  const objects = new Map<string, MemoryObject & { organizationId: string }>();
  const calls: CallOptions[] = [];
  /** Set to let every call fail. */
  const failing: { error?: ServiceError } = {};

  const visible = ({ principal }: CallOptions) =>
    [...objects.values()].filter(
      ({ organizationId, type }) => organizationId === principal.organizationId && principal.memoryTypes.includes(type),
    );
  function find(id: string, call: CallOptions) {
    const found = visible(call).find((object) => object.id === id);
    if (!found) throw new ServiceError('NOT_FOUND', 'Memory object not found');
    return found;
  }
  const messageOf = ({ organizationId: _organizationId, ...object }: MemoryObject & { organizationId: string }) => ({
    memoryObject: object,
    etag: `"${object.revision}-${object.type}"`,
  });
  const answering =
    <R, A>(answer: (request: R, call: CallOptions) => A) =>
    async (request: R, call: CallOptions): Promise<A> => {
      calls.push(call);
      if (failing.error) throw failing.error;
      return answer(request, call);
    };

  const client: Memory = {
    createMemoryObject: answering(({ type = '', key = newId(), content = '{}', upsert }, call) => {
      const { organizationId, memoryTypes } = call.principal;
      if (!memoryTypes.includes(type)) throw new ServiceError('NOT_FOUND', 'Memory type not found');
      const taken = visible(call).find((object) => object.type === type && object.key === key);
      if (taken && !upsert) throw new ServiceError('ALREADY_EXISTS', undefined, { facts: { id: taken.id } });
      const now = '2030-01-01T00:00:00.000Z';
      const made = {
        ...{ organizationId, id: taken?.id ?? newId(), typeId: newId(), type, key, content, schemaVersion: 1 },
        ...{ revision: (taken?.revision ?? 0) + 1, createdAt: now, updatedAt: now },
      };
      objects.set(made.id, made);
      return { ...messageOf(made), outcome: taken ? ('REPLACED' as const) : ('CREATED' as const), location: '' };
    }),
    listMemoryObjects: answering(({ type, key, pageSize = 20 }, call) => {
      const all = visible(call)
        .filter((object) => (type ?? object.type) === object.type && (key ?? object.key) === object.key)
        .reverse();
      const items = all.slice(0, pageSize).map((object) => messageOf(object).memoryObject);
      return {
        total: all.length,
        items,
        nextCursor: all.length > pageSize ? 'next' : undefined,
        prevCursor: undefined,
      };
    }),
    getMemoryObject: answering(({ id }, call) => messageOf(find(id, call))),
    updateMemoryObject: answering(({ pathId, content, ifMatch }, call) => {
      const found = find(pathId, call);
      if (ifMatch !== undefined && ifMatch !== messageOf(found).etag) throw new ServiceError('PRECONDITION_FAILED');
      const changed = { ...found, content: content!, revision: found.revision + 1 };
      objects.set(changed.id, changed);
      return messageOf(changed);
    }),
    deleteMemoryObject: answering(({ id }, call) => {
      objects.delete(find(id, call).id);
      return { success: true, id };
    }),
  };
  return { client, calls, failing };
}
