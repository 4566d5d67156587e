import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { newId } from 'platform/core/ids.ts';
import { request, untilAvailable, type Reply } from './request.ts';
import { REPOSITORY } from './stack.ts';
import { expressionAgent, type Tenant, type TenantOptions } from './tenant.ts';

/** How a process or an engine does not work: nothing listens, or nothing answers. */
export type Fault = 'killed' | 'paused';

const AGENT = 'degradation';
/** What the tenant of these requests needs. */
export const DEGRADATION_TENANT: TenantOptions = { credits: 1_000, agents: [expressionAgent(AGENT, '{"ok": true}')] };

/** One request of each endpoint, by its name in the table; they change nothing that another one needs. */
export async function requestsOfAllEndpoints(
  tenant: Tenant,
  baseUrl: string,
): Promise<ReadonlyMap<string, () => Promise<Reply>>> {
  const created = async (path: string, body: () => object): Promise<string> =>
    idOf(await onceMoreAfter504(() => tenant.request('POST', path, body())));
  const newType = (): object => ({ type: `T${newId()}`, jsonSchema: {} });
  const typeId = await created('/api/memory/types', newType);
  const newObject = (): object => ({ typeId, key: newId(), content: {} });
  const objectId = await created('/api/memory/objects', newObject);
  const [typeToDelete, objectToDelete] = [
    await created('/api/memory/types', newType),
    await created('/api/memory/objects', newObject),
  ];
  const run = { agentName: AGENT, args: {} };
  const executionId = await created('/api/agent/run', () => run);
  const send = (verb: string, path: string, body?: object) => () => tenant.requestOnce(verb, path, body);
  const sendPublic = (path: string) => () => request(baseUrl, 'GET', path);
  return new Map([
    ['GET /healthz', sendPublic('/healthz')],
    ['GET /readyz', sendPublic('/readyz')],
    ['GET /.well-known/jwks.json', sendPublic('/.well-known/jwks.json')],
    ['GET /api/auth/whoami', send('GET', '/api/auth/whoami')],
    ['GET /api/agent/run', send('GET', '/api/agent/run')],
    ['POST /api/agent/run', send('POST', '/api/agent/run', run)],
    ['GET /api/agent/executions', send('GET', '/api/agent/executions')],
    ['GET /api/agent/executions/{id}', send('GET', `/api/agent/executions/${executionId}`)],
    ['DELETE /api/agent/executions/{id}', send('DELETE', `/api/agent/executions/${executionId}`)],
    ['GET /api/memory/types', send('GET', '/api/memory/types')],
    ['POST /api/memory/types', send('POST', '/api/memory/types', newType())],
    ['GET /api/memory/types/{id}', send('GET', `/api/memory/types/${typeId}`)],
    ['PUT /api/memory/types/{id}', send('PUT', `/api/memory/types/${typeId}`, { description: newId() })],
    ['DELETE /api/memory/types/{id}', send('DELETE', `/api/memory/types/${typeToDelete}`)],
    ['DELETE /api/memory/types/{id}/change', send('DELETE', `/api/memory/types/${typeId}/change`)],
    ['GET /api/memory/objects', send('GET', '/api/memory/objects')],
    ['POST /api/memory/objects', send('POST', '/api/memory/objects', newObject())],
    ['GET /api/memory/objects/{id}', send('GET', `/api/memory/objects/${objectId}`)],
    ['PATCH /api/memory/objects/{id}', send('PATCH', `/api/memory/objects/${objectId}`, { content: { a: 1 } })],
    ['DELETE /api/memory/objects/{id}', send('DELETE', `/api/memory/objects/${objectToDelete}`)],
  ]);
}

function idOf({ status, text, body }: Reply): string {
  const id = body.agentExecutionId ?? body.id;
  if (id === undefined) throw new Error(`Nothing was created: ${status} ${text}`);
  return id;
}

/**
 * Sends all requests at once and waits for all replies. One that should not be 503 is sent again after a 503, which a
 * stall of the machine has caused. One that should be 503 is sent once more after a 504: its caller wrote it to a
 * connection before it learned that the other end was killed, so the outcome was unknown; the next one knows.
 */
export async function repliesToAll(
  requests: ReadonlyMap<string, () => Promise<Reply>>,
  expected: Record<string, number>,
): Promise<ReadonlyMap<string, Reply>> {
  return new Map(
    await Promise.all(
      [...requests].map(async ([name, send]): Promise<[string, Reply]> => [
        name,
        await (expected[name] === 503 ? onceMoreAfter504(send) : untilAvailable(send)),
      ]),
    ),
  );
}

async function onceMoreAfter504(send: () => Promise<Reply>): Promise<Reply> {
  const reply = await send();
  return reply.status === 504 ? send() : reply;
}

/** Compares replies with a column of the table, and what comes with each status. */
export function expectStatuses(replies: ReadonlyMap<string, Reply>, expected: Record<string, number>): void {
  expect(Object.fromEntries([...replies].map(([name, { status }]) => [name, status]))).toEqual(expected);
  for (const { status, headers, body } of replies.values()) {
    expect(body).toBeDefined();
    if (status === 503) expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    if (status === 504) expect(body.code).toBe('outcome_unknown');
  }
}

/** The column of the table in ARCHITECTURE.md: the status of each request while `what` does not work. */
export function documentedStatuses(what: string, fault: Fault): Record<string, number> {
  const text = readFileSync(join(REPOSITORY, 'ARCHITECTURE.md'), 'utf8');
  const section = text.slice(text.indexOf('## When something is down'), text.indexOf('## Where to start reading'));
  const [head = [], , ...rows] = section
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
  const column = head.indexOf(what);
  return Object.fromEntries(
    rows.flatMap((cells) => {
      const [killed = '', paused = killed] = (cells[column] ?? '').split(' / ');
      const status = Number(fault === 'killed' ? killed : paused);
      return [...(cells[0] ?? '').matchAll(/`([^`]+)`/g)].map(([, name]) => [name as string, status]);
    }),
  );
}
