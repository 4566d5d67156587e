/** One request that works, and its reply. */
export interface Example {
  /** Values of path parameters and query parameters. */
  parameters?: Readonly<Record<string, string>>;
  body?: unknown;
  status: number;
  reply: unknown;
}

const TYPE_ID = '019a5b3e-0c00-7000-8000-000000000001';
const OBJECT_ID = '019a5b3e-0c00-7000-8000-000000000002';
const EXECUTION_ID = '019a5b3e-0c00-7000-8000-000000000003';
const OUTPUT = { total: 25, count: 1 };
const SESSION_ID = 'api-019a5b3e-0c00-7000-8000-000000000004';
const AT = '2026-11-23T09:00:00.000Z';

const JSON_SCHEMA = { type: 'object', required: ['name'], properties: { name: { type: 'string' } } };
const TYPE = {
  id: TYPE_ID,
  type: 'customer',
  displayName: 'customer',
  description: '',
  visibility: 'organization',
  version: 1,
  jsonSchema: JSON_SCHEMA,
  idSchema: null,
  embeddingSchema: null,
  groupNames: [],
  relations: [],
  state: 'active',
  createdAt: AT,
  updatedAt: AT,
  change: null,
};
const DESCRIBED_TYPE = { ...TYPE, description: 'Who buys from us' };
const OBJECT = {
  id: OBJECT_ID,
  typeId: TYPE_ID,
  type: 'customer',
  key: 'c-1',
  content: { name: 'Ada' },
  schemaVersion: 1,
  revision: 1,
  createdAt: AT,
  updatedAt: AT,
};
const ARGS = { items: [{ price: 12.5, quantity: 2 }] };
const EXECUTION = {
  id: EXECUTION_ID,
  sessionId: SESSION_ID,
  agent: 'invoice-total',
  agentVersion: 1,
  status: 'succeeded',
  error: null,
  actor: { kind: 'server_token', id: '019a5b3e-0c00-7000-8000-000000000005', name: 'tests' },
  charge: 1.0012,
  usage: { steps: 12, cpuMs: 1 },
  createdAt: AT,
  startedAt: AT,
  finishedAt: AT,
};

/**
 * By verb and path, in an order in which they work one after the other. test/api/openapi-examples.test.ts makes the
 * requests and compares the replies, but for ids, times and measurements.
 */
export const EXAMPLES: Readonly<Record<string, Example>> = {
  'GET /api/auth/whoami': {
    status: 200,
    reply: {
      kind: 'server_token',
      id: '019a5b3e-0c00-7000-8000-000000000005',
      name: 'tests',
      organization: { id: '019a5b3e-0c00-7000-8000-000000000006', name: 'demo' },
      roles: ['admin'],
      groups: [],
      tier: 'professional',
      capabilities: ['memory', 'agents'],
      limits: { memory_types: 200, memory_objects: 1_000_000 },
      credits: 1_000,
      rates: [
        { rate: 'requests', limit: 'token', maxPerMinute: 600, left: 599 },
        { rate: 'requests', limit: 'organization', maxPerMinute: 3_000, left: 2_999 },
        { rate: 'runs', limit: 'token', maxPerMinute: 120, left: 120 },
        { rate: 'runs', limit: 'organization', maxPerMinute: 600, left: 600 },
      ],
    },
  },
  'GET /api/agent/run': { status: 200, reply: { agents: [{ name: 'invoice-total' }] } },
  'POST /api/agent/run': {
    body: { agentName: 'invoice-total', args: ARGS },
    status: 200,
    reply: {
      success: true,
      sessionId: SESSION_ID,
      agentExecutionId: EXECUTION_ID,
      agent: 'invoice-total',
      output: OUTPUT,
      messages: [],
    },
  },
  'GET /api/agent/executions': { parameters: { status: 'succeeded' }, status: 200, reply: { items: [EXECUTION] } },
  'GET /api/agent/executions/{id}': {
    parameters: { id: EXECUTION_ID },
    status: 200,
    reply: {
      ...EXECUTION,
      requestId: '019a5b3e-0c00-7000-8000-000000000006',
      traceId: null,
      args: ARGS,
      output: OUTPUT,
      messages: [],
    },
  },
  'DELETE /api/agent/executions/{id}': {
    parameters: { id: EXECUTION_ID },
    status: 409,
    reply: {
      error: 'The agent execution has ended',
      code: 'conflict',
      requestId: '019a5b3e-0c00-7000-8000-000000000007',
    },
  },
  'POST /api/memory/types': { body: { type: 'customer', jsonSchema: JSON_SCHEMA }, status: 201, reply: TYPE },
  'GET /api/memory/types/{id}': { parameters: { id: TYPE_ID }, status: 200, reply: TYPE },
  'PUT /api/memory/types/{id}': {
    parameters: { id: TYPE_ID },
    body: { description: 'Who buys from us' },
    status: 200,
    reply: DESCRIBED_TYPE,
  },
  'GET /api/memory/types': { status: 200, reply: { items: [DESCRIBED_TYPE] } },
  'POST /api/memory/objects': {
    body: { type: 'customer', key: 'c-1', content: { name: 'Ada' } },
    status: 201,
    reply: OBJECT,
  },
  'GET /api/memory/objects/{id}': { parameters: { id: OBJECT_ID }, status: 200, reply: OBJECT },
  'GET /api/memory/objects': {
    parameters: { type: 'customer', key: 'c-1' },
    status: 200,
    reply: { total: 1, items: [OBJECT] },
  },
  'PATCH /api/memory/objects/{id}': {
    parameters: { id: OBJECT_ID },
    body: { content: { name: 'Ada Lovelace' } },
    status: 200,
    reply: { ...OBJECT, content: { name: 'Ada Lovelace' }, revision: 2 },
  },
  'DELETE /api/memory/objects/{id}': {
    parameters: { id: OBJECT_ID },
    status: 200,
    reply: { success: true, id: OBJECT_ID },
  },
  'DELETE /api/memory/types/{id}/change': {
    parameters: { id: TYPE_ID },
    status: 404,
    reply: {
      error: 'Nothing is under way for this memory type',
      code: 'not_found',
      requestId: '019a5b3e-0c00-7000-8000-000000000007',
    },
  },
  'DELETE /api/memory/types/{id}': { parameters: { id: TYPE_ID }, status: 200, reply: { success: true, id: TYPE_ID } },
};
