import { invalid, ServiceError } from 'platform/core/errors.ts';
import { compileSchema, type CompiledSchema } from 'platform/json-schema/schema.ts';
import type { CallOptions, ServiceClient } from 'platform/rpc/call.ts';
import type { MemoryObject, MemoryServiceService } from 'proto/memory/v1/memory.ts';

export type Memory = Pick<
  ServiceClient<typeof MemoryServiceService>,
  'createMemoryObject' | 'listMemoryObjects' | 'getMemoryObject' | 'updateMemoryObject' | 'deleteMemoryObject'
>;

/** Input of any operation, after its schema was checked; `content` is JSON text. */
interface Input {
  id?: string;
  type?: string;
  key?: string;
  content?: string;
  upsert?: boolean;
  ifMatch?: string;
  pageSize?: number;
  cursor?: string;
}

export interface MemoryOperation {
  name: string;
  /** For language models, too. */
  description: string;
  writes: boolean;
  /** JSON Schema of the input. */
  schema: object;
  compiled: CompiledSchema;
  /** @returns JSON text. @throws ServiceError */
  perform(memory: Memory, input: Input, call: CallOptions): Promise<string>;
}

/** Of what an operation reads at once, so that neither a run nor this process needs more memory. */
export const MAX_READ_BYTES = 1_048_576;

const MEMBERS = {
  id: { type: 'string', description: 'Id of the object.' },
  type: { type: 'string', minLength: 1, description: 'Name of the memory type.' },
  key: { type: 'string', minLength: 1, description: 'Key of the object in its type.' },
  content: { type: 'object', description: 'The whole content of the object, by the JSON Schema of its type.' },
  upsert: { type: 'boolean', description: 'true: replaces the content of the object that has the key.' },
  ifMatch: {
    type: 'string',
    description: 'etag of the object as it was read; the call fails if it has changed since.',
  },
  pageSize: { type: 'integer', minimum: 1, maximum: 100, description: 'Most objects of the answer; 20 if absent.' },
  cursor: { type: 'string', description: 'nextCursor of the answer before, for the objects that follow.' },
} as const;

function operation(
  name: string,
  description: string,
  {
    members,
    required = [],
    writes,
  }: { members: readonly (keyof typeof MEMBERS)[]; required?: readonly string[]; writes: boolean },
  perform: MemoryOperation['perform'],
): MemoryOperation {
  const properties = Object.fromEntries(members.map((member) => [member, MEMBERS[member]]));
  const schema = { type: 'object', properties, required, additionalProperties: false };
  return { name, description, writes, schema, compiled: compileSchema(JSON.stringify(schema)), perform };
}

const ONE = ['id', 'type', 'key'] as const;

/** What an agent may do with memory objects. The answers have the members of the REST API. */
export const MEMORY_OPERATIONS: readonly MemoryOperation[] = [
  operation(
    'find',
    'Lists memory objects, the newest first: all, those of a type, or the one with a key.',
    { members: ['type', 'key', 'pageSize', 'cursor'], writes: false },
    async (memory, { type, key, pageSize, cursor }, call) => {
      const request = { typeId: undefined, type, key, page: undefined, pageSize, cursor };
      const { total, items, nextCursor } = await memory.listMemoryObjects(request, reading(call));
      return `{"total":${total},"items":[${items.map((item) => textOf(item)).join()}],"nextCursor":${JSON.stringify(nextCursor ?? null)}}`;
    },
  ),
  operation(
    'get',
    'Reads one memory object by its id, or by its type and key; null if there is none.',
    { members: ONE, writes: false },
    async (memory, input, call) => {
      const id = await idOf(memory, input, call);
      if (id === undefined) return 'null';
      try {
        const { memoryObject, etag } = await memory.getMemoryObject({ id }, reading(call));
        return textOf(memoryObject!, etag);
      } catch (error) {
        if (error instanceof ServiceError && error.reason === 'NOT_FOUND') return 'null';
        throw error;
      }
    },
  ),
  operation(
    'create',
    'Creates a memory object.',
    { members: ['type', 'key', 'content', 'upsert'], required: ['type', 'content'], writes: true },
    async (memory, { type, key, content, upsert }, call) => {
      const request = { typeId: undefined, type, key, content, upsert };
      const { memoryObject, etag } = await memory.createMemoryObject(request, call);
      return textOf(memoryObject!, etag);
    },
  ),
  operation(
    'update',
    'Replaces the content of a memory object, which is given by its id, or by its type and key.',
    { members: [...ONE, 'content', 'ifMatch'], required: ['content'], writes: true },
    async (memory, input, call) => {
      const pathId = await requireId(memory, input, call);
      const named = { id: undefined, typeId: undefined, type: undefined, key: undefined };
      const { content, ifMatch } = input;
      const request = { ...named, pathId, content, ifMatch, updateMask: ['content'] };
      const { memoryObject, etag } = await memory.updateMemoryObject(request, call);
      return textOf(memoryObject!, etag);
    },
  ),
  operation(
    'delete',
    'Deletes a memory object, which is given by its id, or by its type and key.',
    { members: [...ONE, 'ifMatch'], writes: true },
    async (memory, input, call) => {
      const { success, id } = await memory.deleteMemoryObject(
        { id: await requireId(memory, input, call), ifMatch: input.ifMatch },
        call,
      );
      return JSON.stringify({ success, id });
    },
  ),
];

const reading = (call: CallOptions): CallOptions => ({ ...call, maxReplyBytes: MAX_READ_BYTES });

/** As JSON text: the content is spliced in as it is. */
function textOf({ content, ...object }: MemoryObject, etag?: string): string {
  return `${JSON.stringify({ ...object, etag }).slice(0, -1)},"content":${content}}`;
}

/** The id that the input names by itself or by type and key; undefined if there is no such key. */
async function idOf(memory: Memory, { id, type, key }: Input, call: CallOptions): Promise<string | undefined> {
  if (id !== undefined && type === undefined && key === undefined) return id;
  if (id !== undefined || type === undefined || key === undefined)
    throw invalid('', 'The object must be named by its id, or by its type and key');
  const request = { typeId: undefined, type, key, page: undefined, pageSize: 1, cursor: undefined };
  const { items } = await memory.listMemoryObjects(request, reading(call));
  return items[0]?.id;
}

async function requireId(memory: Memory, input: Input, call: CallOptions): Promise<string> {
  const id = await idOf(memory, input, call);
  if (id === undefined) throw new ServiceError('NOT_FOUND', 'Memory object not found');
  return id;
}
