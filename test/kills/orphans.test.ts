import { PROCESSES } from 'platform/core/processes.ts';
import { isGone } from '../../dev-servers/src/process-state.ts';
import { startGatewayToFirstAgents, type StackProcess } from '../support/stack-process.ts';
import { eventually } from 'platform/service/test-end.ts';
import { request, untilAvailable } from '../support/request.ts';
import { startStack, type Stack } from '../support/stack.ts';
import type { Tenant } from '../support/tenant.ts';
import { childrenOf, commandOf, descendantsOf } from '../support/process-tree.ts';
import { ENDLESS, LOAD_AGENTS, SHORT_LEASES } from '../support/load-settings.ts';

describe('child processes end with their parent', () => {
  let stack: Stack;
  let tenant: Tenant;
  let gateway: StackProcess;
  beforeAll(async () => {
    stack = await startStack({ env: SHORT_LEASES });
    tenant = await stack.tenant({ credits: 10, agents: LOAD_AGENTS });
    gateway = await startGatewayToFirstAgents(stack);
  });
  afterAll(async () => {
    gateway.child.kill('SIGTERM');
    await stack.stop();
  });

  it('kill -9 of agents ends its runner processes, also one in an endless evaluation', async () => {
    const runners = await startEndlessRun();
    await stack.killAndAwait('agents');
    await eventually(() => runners.every(isGone));
    expect(runners.filter((pid) => commandOf(pid) !== '')).toEqual([]);
  });

  it('kill -9 of the launcher ends all five processes, and also a runner in an endless evaluation', async () => {
    const runners = await startEndlessRun();
    const descendants = descendantsOf(stack.launcher.pid as number);
    expect(descendants).toEqual(expect.arrayContaining(runners));
    expect(descendants.length).toBe(Object.keys(PROCESSES).length + runners.length);
    stack.launcher.kill('SIGKILL');
    await eventually(() => descendants.every(isGone));
    expect(descendants.filter((pid) => commandOf(pid) !== '')).toEqual([]);
  });

  /** Starts a run that never ends by itself. @returns the process ids of the runners */
  async function startEndlessRun(): Promise<number[]> {
    const before = new Set(await endlessRuns());
    void untilAvailable(() =>
      request(`http://${gateway.address}`, 'POST', '/api/agent/run', {
        token: tenant.token,
        body: { agentName: ENDLESS, args: { n: 0 } },
      }),
    ).catch(() => undefined);
    await eventually(async () => (await endlessRuns()).some((id) => !before.has(id)));
    return childrenOf(stack.pidOf('agents'));
  }

  const endlessRuns = async (): Promise<string[]> =>
    (await tenant.request('GET', `/api/agent/executions?agent=${ENDLESS}&status=running`)).body.items.map(
      ({ id }: { id: string }) => id,
    );
});
