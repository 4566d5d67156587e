import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, credentials, Server, ServerCredentials, type ChannelCredentials } from '@grpc/grpc-js';
import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { keyFolderOf } from 'platform/rpc/keys.ts';
import { serverToken } from 'platform/service/testing.ts';
import { closedInTheEnd } from 'platform/service/test-end.ts';
import { startProcess } from '../support/stack-process.ts';
import { startStack, type Stack } from '../support/stack.ts';

/** A process on auth's port that takes every token for that of an enterprise. */
async function startImpostor(): Promise<{ address: string; asked(): number }> {
  let asked = 0;
  const server = new Server();
  const methods = Object.keys(AuthServiceService).map((name) => [
    name,
    ({ request }: { request: { attempts?: object[] } }, reply: (error: null, value: object) => void) => {
      asked += 1;
      reply(null, {
        decisions: (request.attempts ?? []).map(() => ({ principal: serverToken('impostor'), denial: undefined })),
      });
    },
  ]);
  server.addService(AuthServiceService, Object.fromEntries(methods) as never);
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    ),
  );
  closedInTheEnd(() => server.forceShutdown());
  return { address: `127.0.0.1:${port}`, asked: () => asked };
}

describe('a process of this machine without a certificate', () => {
  let stack: Stack;
  beforeAll(async () => {
    stack = await startStack({ replicas: 1 });
  });
  afterAll(() => stack.stop());

  it('is not believed on the port of auth: the gateway asks it nothing and answers 503', async () => {
    const impostor = await startImpostor();
    const gateway = await startProcess(stack, 'gateway', { AUTH_ADDRESS: impostor.address });
    const response = await fetch(`http://${gateway.address}/api/memory/types`, {
      headers: { authorization: 'Bearer anything' },
    });
    expect([response.status, impostor.asked()]).toEqual([503, 0]);
    gateway.child.kill('SIGKILL');
  });

  it('gets no connection to a service, with TLS or without', async () => {
    const ca = readFileSync(join(keyFolderOf(stack.folder), 'ca.crt'));
    const { path, requestSerialize, responseDeserialize } = AuthServiceService.authenticate;
    const outcome = (channelCredentials: ChannelCredentials) =>
      new Promise((resolve) => {
        const client = new Client(stack.env.AUTH_LISTEN as string, channelCredentials, {
          'grpc.ssl_target_name_override': 'auth',
        });
        const request = { attempts: [] };
        client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, (error: Error | null) => {
          client.close();
          resolve(error?.message ?? 'answered');
        });
      });
    for (const each of [credentials.createInsecure(), credentials.createSsl(ca)])
      expect(await outcome(each)).toMatch(/No connection established/);
  });
});
