import { AgentsServiceService } from 'proto/agents/v1/agents.ts';
import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { newId } from 'platform/core/ids.ts';
import { keyFolderOf } from 'platform/rpc/keys.ts';
import { openOperator } from 'platform/rpc/operator.ts';
import { settingOf, type ProcessName } from 'platform/core/processes.ts';
import { pause } from '../../dev-servers/src/pause.ts';
import { freePorts } from '../support/addresses.ts';
import { startProcess } from '../support/stack-process.ts';
import { expectError } from '../support/expect-error.ts';
import { ROUTES } from '../support/routes.ts';
import { eventually } from 'platform/service/test-end.ts';
import { request, untilAvailable, type Reply } from '../support/request.ts';
import { startStack, type Stack } from '../support/stack.ts';
import { expressionAgent, type Tenant } from '../support/tenant.ts';

let stack: Stack;
let tenant: Tenant;
const started: ChildProcess[] = [];
beforeAll(async () => {
  stack = await startStack();
  tenant = await stack.tenant({ credits: 10, agents: [expressionAgent('hello', '{}')] });
});
afterAll(async () => {
  for (const child of started) child.kill('SIGTERM');
  await stack.stop();
});

/** Starts one more process of the stack, with an address where nothing listens for each missing service. */
async function startWithout(
  name: ProcessName,
  missing: readonly ProcessName[],
  given: Record<string, string> = {},
): Promise<string> {
  const [unusedPort] = await freePorts(1);
  const addresses = Object.fromEntries(missing.map((each) => [settingOf(each, 'ADDRESS'), `127.0.0.1:${unusedPort}`]));
  const { address, child } = await startProcess(stack, name, { ...addresses, ...given });
  started.push(child);
  return address;
}
const requestAt = (address: string, verb: string, path: string, body?: unknown, headers?: Record<string, string>) =>
  request(`http://${address}`, verb, path, { token: tenant.token, body, headers });
const body = {
  type: 'T',
  jsonSchema: {},
  agentName: 'hello',
  args: {},
  typeId: newId(),
  key: 'k',
  content: {},
  description: 'x',
};
/** A body that passes the checks of the gateway. */
const bodyOf = ({ verb, template }: { verb: string; template: string }) => {
  const pick = (...names: (keyof typeof body)[]) => Object.fromEntries(names.map((name) => [name, body[name]]));
  if (verb === 'PATCH') return pick('content');
  if (verb === 'PUT') return pick('description');
  return template === '/api/agent/run'
    ? pick('agentName', 'args')
    : template === '/api/memory/types'
      ? pick('type', 'jsonSchema')
      : pick('typeId', 'key', 'content');
};
const expectUnavailable = (reply: Reply) => {
  expectError(reply, 503, 'unavailable');
  expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0);
};

describe('a service that is down', () => {
  it('503 with Retry-After on every route of that service', async () => {
    const routes = ROUTES.filter(({ method: { audience } }) => audience !== 'auth');
    const gateway = await startWithout('gateway', ['memory', 'agents']);
    const replies = await Promise.all(
      routes.map((route) => requestAt(gateway, route.verb, route.path, route.takesBody ? bodyOf(route) : undefined)),
    );
    for (const reply of replies) expectUnavailable(reply);
  });

  it('503 for every token, valid or not, when auth is down; what needs no token still works', async () => {
    const gateway = await startWithout('gateway', ['auth']);
    expectUnavailable(await requestAt(gateway, 'GET', '/api/memory/types'));
    expect((await requestAt(gateway, 'GET', '/healthz')).status).toBe(200);
    expectError(await requestAt(gateway, 'GET', '/nowhere'), 404, 'not_found');
  });

  it('503 for a run when credits is down, and no execution is left', async () => {
    const AGENTS_ADDRESS = await startWithout('agents', ['credits'], { DATA_DIR: join(stack.folder, 'second') });
    const gateway = await startWithout('gateway', [], { AGENTS_ADDRESS });
    const operator = openOperator({ keyFolder: keyFolderOf(stack.folder), addresses: { AGENTS_ADDRESS } });
    const agents = operator.client(AgentsServiceService, 'agents');
    await agents.applyAgent(
      { definition: JSON.stringify(expressionAgent('hello', '{}')) },
      operator.as(tenant.organizationId),
    );
    await agents.publishAgent({ name: 'hello', version: undefined }, operator.as(tenant.organizationId));
    operator.close();
    const run = () =>
      requestAt(
        gateway,
        'POST',
        '/api/agent/run',
        { agentName: 'hello', args: {} },
        { 'Idempotency-Key': 'kept-free' },
      );
    for (const reply of [await run(), await run()]) expectUnavailable(reply);
    expect((await requestAt(gateway, 'GET', '/api/agent/executions')).body).toEqual({ items: [] });
  });
});

/** Numbers of replicas to pause. */
const PAUSED = process.env.TEST_ENGINES ? [1, 2] : [1];

describe('a service whose process is paused', () => {
  it.each(PAUSED)(
    '503 for a read and 504 outcome_unknown for a write at each paused replica, none at others: %i paused',
    async (count) => {
      const create = () => tenant.requestOnce('POST', '/api/memory/types', { type: `Late-${newId()}`, jsonSchema: {} });
      const read = () => tenant.requestOnce('GET', '/api/memory/types');
      const paused = stack.pidsOf('memory').slice(0, count);
      const others = stack.baseUrls.length - count;
      // first, every gateway calls every replica
      for (const _turn of [1, 2, 3, 4]) expect((await untilAvailable(read)).status).toBe(200);
      await Promise.all(paused.map(pause));
      const replies = { paused: 0, working: 0 };
      try {
        // the other replicas answer long before the calls to the paused ones time out
        await eventually(async () => {
          const [reads, writes] = (await Promise.all(
            [read, create].map((send) => Promise.all(Array.from({ length: 4 }, send))),
          )) as [Reply[], Reply[]];
          for (const reply of reads.filter(({ status }) => others === 0 || status !== 200)) expectUnavailable(reply);
          for (const reply of writes.filter(({ status }) => others === 0 || status !== 201))
            expectError(reply, 504, 'outcome_unknown');
          for (const { status } of [...reads, ...writes]) replies[status < 300 ? 'working' : 'paused'] += 1;
          return replies.paused > 0 && (replies.working > 0 || others === 0);
        });
      } finally {
        for (const pid of paused) process.kill(pid, 'SIGCONT');
      }
      for (const _turn of [1, 2, 3, 4]) expect((await untilAvailable(read)).status).toBe(200);
    },
  );
});
