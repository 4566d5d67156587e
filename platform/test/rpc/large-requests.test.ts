import { AgentsServiceService, type RunAgentRequest } from 'proto/agents/v1/agents.ts';
import { CALLER_LOST, type BoundHandlers, type CallContext } from 'platform/rpc/call.ts';
import { clientOf, openConnection } from 'platform/rpc/client.ts';
import { openIdentity } from 'platform/rpc/identity.ts';
import { createKeys, identityFilesOf } from 'platform/rpc/keys.ts';
import { startServer } from 'platform/rpc/server.ts';
import { makeLog } from 'platform/core/log.ts';
import { serverToken, temporaryFolder } from 'platform/service/testing.ts';
import { closedInTheEnd, eventually } from 'platform/service/test-end.ts';
import { tcpProxy } from './tcp-proxy.ts';

/** A request that no frame of a stream takes. */
const LARGE: RunAgentRequest = { agentName: 'a', args: JSON.stringify('x'.repeat(100_000)), idempotencyKey: undefined };

/** A service of which RunAgent never answers, behind a proxy, and a client of it. */
async function startHangingRun() {
  const folder = temporaryFolder();
  await createKeys(folder.path, ['gateway', 'agents']);
  const identityOf = (name: string) => openIdentity({ name, ...identityFilesOf(folder.path, name) });
  const began = Promise.withResolvers<{ request: RunAgentRequest; context: CallContext }>();
  const handlers: Partial<BoundHandlers<typeof AgentsServiceService>> = {
    runAgent(request, context) {
      began.resolve({ request, context });
      return new Promise(() => undefined);
    },
  };
  const server = await startServer({
    listen: '127.0.0.1:0',
    identity: identityOf('agents'),
    log: makeLog('agents', 'silent'),
    services: [{ definition: AgentsServiceService, handlers: handlers }],
  });
  const proxy = await tcpProxy(Number(server.address.split(':').at(-1)));
  const connection = openConnection({
    address: `127.0.0.1:${proxy.port}`,
    audience: 'agents',
    identity: identityOf('gateway'),
  });
  closedInTheEnd(async () => {
    connection.close();
    proxy.close();
    await server.drain(0);
    folder.remove();
  });
  const client = clientOf(AgentsServiceService, connection.call);
  const run = (signal: AbortSignal) =>
    client.runAgent(LARGE, { principal: serverToken('organization-1'), requestId: 'test', signal });
  return { run, began: began.promise, sever: proxy.close };
}

describe('a request that is too large for a frame', () => {
  it('reaches the handler whole, which learns that the caller has cancelled', async () => {
    const { run, began } = await startHangingRun();
    const caller = new AbortController();
    const outcome = expect(run(caller.signal)).rejects.toMatchObject({ reason: 'CLIENT_GONE' });
    const { request, context } = await began;
    expect(request.args).toBe(LARGE.args);
    caller.abort();
    await outcome;
    await eventually(() => context.signal.aborted);
    expect(context.signal.reason).not.toBe(CALLER_LOST);
  });

  it('has a handler which learns that the caller is lost', async () => {
    const { run, began, sever } = await startHangingRun();
    const outcome = expect(run(new AbortController().signal)).rejects.toMatchObject({ reason: 'OUTCOME_UNKNOWN' });
    const { context } = await began;
    sever();
    await outcome;
    await eventually(() => context.signal.aborted);
    expect(context.signal.reason).toBe(CALLER_LOST);
  });
});
