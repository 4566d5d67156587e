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
import {
  eventually,
  expressionAgent,
  request,
  startStack,
  untilAvailable,
  type Reply,
  type Stack,
  type Tenant,
} from '../support/stack.ts';

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

/** One more process of the same stack, which looks for these services where nobody listens. */
async function startWithout(
  part: ProcessName,
  missing: readonly ProcessName[],
  given: Record<string, string> = {},
): Promise<string> {
  const [nowhere] = await freePorts(1);
  const lost = Object.fromEntries(missing.map((name) => [settingOf(name, 'ADDRESS'), `127.0.0.1:${nowhere}`]));
  const { address, child } = await startProcess(stack, part, { ...lost, ...given });
  started.push(child);
  return address;
}
const askAt = (address: string, verb: string, path: string, body?: unknown, headers?: Record<string, string>) =>
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
/** A body that the gateway lets pass. */
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
  it('503 with Retry-After: every route of that service', async () => {
    const gateway = await startWithout('gateway', ['memory', 'agents']);
    const replies = await Promise.all(
      ROUTES.map((route) => askAt(gateway, route.verb, route.path, route.takesBody ? bodyOf(route) : undefined)),
    );
    for (const reply of replies) expectUnavailable(reply);
  });

  it('503 for every token, valid or not, when auth is down; what needs no token is answered', async () => {
    const gateway = await startWithout('gateway', ['auth']);
    expectUnavailable(await askAt(gateway, 'GET', '/api/memory/types'));
    expect((await askAt(gateway, 'GET', '/health')).status).toBe(200);
    expectError(await askAt(gateway, 'GET', '/nowhere'), 404, 'not_found');
  });

  it('503 for a run when credits are down, and no record is left', async () => {
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
      askAt(gateway, 'POST', '/api/agent/run', { agentName: 'hello', args: {} }, { 'Idempotency-Key': 'kept-free' });
    for (const reply of [await run(), await run()]) expectUnavailable(reply);
    expect((await askAt(gateway, 'GET', '/api/agent/executions')).body).toEqual({ items: [] });
  });
});

/** How many of the replicas have stopped. */
const STOPPED = process.env.TEST_ENGINES ? [1, 2] : [1];

describe('a service that has stopped in mid-call', () => {
  it.each(STOPPED)(
    '503 for a read, 504 outcome_unknown for a write, by each stopped replica; another one answers its own: %i stopped',
    async (count) => {
      const create = () => tenant.requestOnce('POST', '/api/memory/types', { type: `Late-${newId()}`, jsonSchema: {} });
      const read = () => tenant.requestOnce('GET', '/api/memory/types');
      const doomed = stack.pidsOf('memory').slice(0, count);
      const others = stack.baseUrls.length - count;
      // every gateway has called every replica
      for (const _turn of [1, 2, 3, 4]) expect((await untilAvailable(read)).status).toBe(200);
      await Promise.all(doomed.map(pause));
      const met = { stopped: 0, working: 0 };
      try {
        // the turns of the other replicas are answered long before
        await eventually(async () => {
          const [reads, writes] = (await Promise.all(
            [read, create].map((ask) => Promise.all(Array.from({ length: 4 }, ask))),
          )) as [Reply[], Reply[]];
          for (const reply of reads.filter(({ status }) => others === 0 || status !== 200)) expectUnavailable(reply);
          for (const reply of writes.filter(({ status }) => others === 0 || status !== 201))
            expectError(reply, 504, 'outcome_unknown');
          for (const { status } of [...reads, ...writes]) met[status < 300 ? 'working' : 'stopped'] += 1;
          return met.stopped > 0 && (met.working > 0 || others === 0);
        });
      } finally {
        for (const pid of doomed) process.kill(pid, 'SIGCONT');
      }
      for (const _turn of [1, 2, 3, 4]) expect((await untilAvailable(read)).status).toBe(200);
    },
  );
});
