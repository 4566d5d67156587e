import { hashToken } from 'platform/core/bearer-token.ts';
import { servicePrincipal } from 'platform/core/principal.ts';
import { AgentsServiceService } from 'proto/agents/v1/agents.ts';
import type { ExecutionRecord } from '../src/executions/store.ts';
import { DEFAULT_LIMITS } from '../src/definitions/rules.ts';
import { definitionOf, ENDLESS, startAgents, until, type Agents } from './fixture.ts';

let agents: Agents;
beforeAll(async () => {
  agents = await startAgents();
  await agents.publish(definitionOf('endless', ENDLESS, { limits: { maxSteps: 1_000_000_000 } }));
});
afterAll(() => agents.service.stop());

const use = (hash: string, calls = 1) =>
  agents.service
    .client(AgentsServiceService, 'auth')
    .useCallbackToken({ hash, calls }, agents.service.as(servicePrincipal('auth')));

/** A run that goes on, and a token for it. */
async function runWithToken(maxToolCalls = 100, wallMs = 60_000) {
  const running = agents.run('endless', {}).catch((error: unknown) => error);
  const deps = agents.deps();
  let execution: ExecutionRecord | undefined;
  await until(async () => {
    const { items } = await agents.call('listAgentExecutions', { status: 'running' });
    execution = items[0] && (await deps.executions.byId(agents.organizationId, items[0].id));
    return execution !== undefined;
  });
  const limits = { ...DEFAULT_LIMITS, maxToolCalls, wallMs };
  const tools = { memory: { types: ['Note'], access: 'write' as const } };
  const { token, expiresAt } = await deps.callbackTokens.issue(execution!, tools, limits);
  const end = async () => {
    await agents.call('cancelAgentExecution', { id: execution!._id });
    await running;
  };
  return { token, hash: hashToken(token), expiresAt, execution: execution!, end };
}

describe('UseCallbackToken', () => {
  it('says whose run a token belongs to as long as the run goes on, and nothing afterwards', async () => {
    const { token, hash, execution, end } = await runWithToken();
    expect(token).toMatch(/^akc_[0-9A-Za-z]{49}$/);
    expect(await use(hash)).toEqual({
      run: {
        ...{ organizationId: agents.organizationId, agentExecutionId: execution._id, agent: 'endless' },
        ...{ memoryTypes: ['Note'], mayWrite: true },
      },
      ...{ admitted: 1, maxCalls: 100 },
    });
    await end();
    expect(await use(hash)).toEqual({ run: undefined, admitted: 0, maxCalls: 0 });
  });

  it('admits as many calls as the run may make, also of many that ask at once', async () => {
    const { hash, end } = await runWithToken(25);
    const answers = await Promise.all(Array.from({ length: 16 }, () => use(hash, 2)));
    expect(answers.reduce((sum, { admitted }) => sum + admitted, 0)).toBe(25);
    expect(await use(hash)).toMatchObject({ run: { agent: 'endless' }, admitted: 0, maxCalls: 25 });
    await end();
  });

  it('knows a token no longer than the run may take', async () => {
    const { hash, end } = await runWithToken(100, -1);
    expect((await use(hash)).run).toBeUndefined();
    await end();
  });

  it('knows no other token, and stores none', async () => {
    const { token, end } = await runWithToken();
    expect((await use(hashToken(`${token}x`))).run).toBeUndefined();
    expect((await use(token)).run).toBeUndefined();
    await end();
  });

  it('is for auth alone', async () => {
    const { service } = agents;
    for (const caller of ['gateway', 'memory'] as const)
      await expect(
        service
          .client(AgentsServiceService, caller)
          .useCallbackToken({ hash: '', calls: 1 }, service.as(servicePrincipal(caller))),
      ).rejects.toMatchObject({ reason: 'FORBIDDEN' });
  });
});
