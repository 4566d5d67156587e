import { AgentsServiceService, type RunAgentRequest, type RunAgentResponse } from 'proto/agents/v1/agents.ts';
import type { BoundHandlers } from 'platform/rpc/call.ts';
import { clientOf, openConnection } from 'platform/rpc/client.ts';
import { openIdentity } from 'platform/rpc/identity.ts';
import { createKeys, identityFilesOf } from 'platform/rpc/keys.ts';
import { startServer, type RunningServer } from 'platform/rpc/server.ts';
import { makeLog } from 'platform/core/log.ts';
import { serverToken, temporaryFolder } from 'platform/service/testing.ts';
import { closedInTheEnd, eventually } from 'platform/service/test-end.ts';

const LOOPS = 8;
const ANSWER = {
  success: true,
  agent: 'a',
  output: '1',
  messages: [],
} as Partial<RunAgentResponse> as RunAgentResponse;
const requestOf = (bytes: number): RunAgentRequest => ({
  agentName: 'a',
  args: JSON.stringify('x'.repeat(bytes)),
  idempotencyKey: undefined,
});

interface Replica extends RunningServer {
  /** Calls that it has had. */
  calls(): number;
}

/** RunAgent without a key, which may not be repeated, over mutual TLS. A large request is a gRPC call of its own. */
describe.each([
  ['small', 10],
  ['large', 100_000],
])('with %s requests under way, no call fails when of two replicas', (_, bytes) => {
  const folder = temporaryFolder();
  const identityOf = (name: string) => openIdentity({ name, ...identityFilesOf(folder.path, name) });
  beforeAll(() => createKeys(folder.path, ['gateway', 'agents']));
  afterAll(() => folder.remove());

  async function start(listen = '127.0.0.1:0'): Promise<Replica> {
    let calls = 0;
    const handlers: Partial<BoundHandlers<typeof AgentsServiceService>> = {
      async runAgent() {
        calls++;
        await new Promise((resolve) => setImmediate(resolve));
        return ANSWER;
      },
    };
    const services = [{ definition: AgentsServiceService, handlers }];
    const log = makeLog('agents', 'silent');
    const server = await startServer({ listen, identity: identityOf('agents'), log, services });
    closedInTheEnd(() => server.drain(0));
    return { ...server, calls: () => calls };
  }
  function connectTo(replicas: readonly Replica[]) {
    const address = replicas.map((replica) => replica.address).join(',');
    const connection = openConnection({ address, audience: 'agents', identity: identityOf('gateway') });
    const client = clientOf(AgentsServiceService, connection.call);
    const run = () =>
      client.runAgent(requestOf(bytes), { principal: serverToken('organization-1'), requestId: 'test' });
    return { run, close: connection.close };
  }
  /** @returns what failed */
  async function underLoad(replicas: readonly Replica[], during: () => Promise<void>): Promise<unknown[]> {
    const { run, close } = connectTo(replicas);
    const failures: unknown[] = [];
    let stopped = false;
    const load = Array.from({ length: LOOPS }, async () => {
      while (!stopped) await run().catch((error: unknown) => failures.push(error));
    });
    await during();
    stopped = true;
    await Promise.all(load);
    close();
    return failures;
  }

  it('none goes, and forty calls begin in one turn', async () => {
    const { run, close } = connectTo([await start()]);
    await run();
    await Promise.all(Array.from({ length: 40 }, run));
    close();
  });

  it('each is drained and started again in turn', async () => {
    const replicas = [await start(), await start()];
    const failures = await underLoad(replicas, async () => {
      for (const i of [0, 1, 0, 1]) {
        await eventually(() => replicas.every(({ calls }) => calls() > 10));
        await replicas[i]!.drain(60_000);
        replicas[i] = await start(replicas[i]!.address);
      }
    });
    expect(failures).toEqual([]);
  });

  it('one goes in the moment in which the other is back', async () => {
    let [one, other] = [await start(), await start()];
    const failures = await underLoad([one, other], async () => {
      await eventually(() => one.calls() > 10 && other.calls() > 10);
      await other.drain(60_000);
      for (let round = 0; round < 6; round++) {
        const back = await start(other.address);
        await one.drain(60_000);
        await eventually(() => back.calls() > 10);
        [one, other] = [back, one];
      }
    });
    expect(failures).toEqual([]);
  });
});
