import { PROCESSES } from 'platform/core/processes.ts';
import { isGone } from '../../dev-servers/src/process-state.ts';
import { startGatewayToFirstAgents, type StackProcess } from '../support/stack-process.ts';
import { eventually, request, startStack, untilAvailable, type Stack, type Tenant } from '../support/stack.ts';
import { childrenOf, commandOf, descendantsOf } from '../support/process-tree.ts';
import { ENDLESS, LOAD_AGENTS, SHORT_LEASES } from '../support/load-settings.ts';

describe('no child survives its parent', () => {
  let stack: Stack;
  let tenant: Tenant;
  let beside: StackProcess;
  beforeAll(async () => {
    stack = await startStack({ env: SHORT_LEASES });
    tenant = await stack.tenant({ credits: 10, agents: LOAD_AGENTS });
    beside = await startGatewayToFirstAgents(stack);
  });
  afterAll(async () => {
    beside.child.kill('SIGTERM');
    await stack.stop();
  });

  it('kill -9 of agents: its runners go, one in an endless evaluation, too', async () => {
    const runners = await startEndlessRun();
    await stack.killAndAwait('agents');
    await eventually(() => runners.every(isGone));
    expect(runners.filter((pid) => commandOf(pid) !== '')).toEqual([]);
  });

  it('kill -9 of the launcher: all five processes go, and a runner in an endless evaluation, too', async () => {
    const runners = await startEndlessRun();
    const family = descendantsOf(stack.launcher.pid as number);
    expect(family).toEqual(expect.arrayContaining(runners));
    expect(family.length).toBe(Object.keys(PROCESSES).length + runners.length);
    stack.launcher.kill('SIGKILL');
    await eventually(() => family.every(isGone));
    expect(family.filter((pid) => commandOf(pid) !== '')).toEqual([]);
  });

  /** Process ids of the runners, of which one will never end by itself. */
  async function startEndlessRun(): Promise<number[]> {
    const before = new Set(await runningNow());
    void untilAvailable(() =>
      request(`http://${beside.address}`, 'POST', '/api/agent/run', {
        token: tenant.token,
        body: { agentName: ENDLESS, args: { n: 0 } },
      }),
    ).catch(() => undefined);
    await eventually(async () => (await runningNow()).some((id) => !before.has(id)));
    return childrenOf(stack.pidOf('agents'));
  }

  const runningNow = async (): Promise<string[]> =>
    (await tenant.request('GET', `/api/agent/executions?agent=${ENDLESS}&status=running`)).body.items.map(
      ({ id }: { id: string }) => id,
    );
});
