import { once } from 'node:events';
import { createServer } from 'node:net';
import { eventually } from 'platform/service/test-end.ts';
import { startStack, type Stack } from '../support/stack.ts';
import { expressionAgent, type Tenant } from '../support/tenant.ts';

const ADD = expressionAgent('add-one', '{"n": n + 1}');

describe('a process that dies', () => {
  let stack: Stack;
  let tenant: Tenant;
  beforeAll(async () => {
    stack = await startStack();
    tenant = await stack.tenant({ credits: 10, agents: [ADD] });
  });
  afterAll(() => stack.stop());

  const run = async (n: number) => {
    const { status, body } = await tenant.request('POST', '/api/agent/run', { agentName: 'add-one', args: { n } });
    return [status, body.output];
  };

  it('is restarted each time, after a longer wait the second time', async () => {
    await stack.killAndAwait('credits');
    expect(await run(1)).toEqual([200, { n: 2 }]);
    await stack.killAndAwait('credits');
    expect(await run(2)).toEqual([200, { n: 3 }]);
    expect(waits(stack, 'credits')).toEqual([0.2, 0.4]);
  });

  it('is restarted ever more slowly while its port is in use, reports why, and then recovers', async () => {
    const pid = stack.pidOf('memory');
    const [host, port] = (stack.env.MEMORY_LISTEN as string).split(':') as [string, string];
    process.kill(pid, 'SIGKILL');
    const otherServer = await eventually(async () => {
      const server = createServer().listen(Number(port), host);
      return Promise.race([
        once(server, 'listening').then(() => server),
        once(server, 'error').then(() => false as const),
      ]).catch(() => false as const);
    });
    const fault = `memory: The address ${host}:${port} is in use by another program; MEMORY_LISTEN sets another\n`;
    await eventually(() => stack.output().split(fault).length > 2);
    otherServer.close();
    await eventually(() => stack.output().includes('memory is back\n'));
    expect(waits(stack, 'memory').slice(0, 3)).toEqual([0.2, 0.4, 0.8]);
    expect((await tenant.request('GET', '/api/memory/types')).status).toBe(200);
    expect(await run(3)).toEqual([200, { n: 4 }]);
  });
});

/** Seconds that the launcher announced to wait before each restart of a process. */
const waits = (stack: Stack, name: string): number[] =>
  [...stack.output().matchAll(new RegExp(`^${name} ended .* starting it again in ([\\d.]+) s$`, 'gm'))].map(
    ([, seconds]) => Number(seconds),
  );
