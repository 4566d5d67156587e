import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect as connectHttp2 } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { openIdentity } from 'platform/rpc/identity.ts';
import { createKeys, identityFilesOf } from 'platform/rpc/keys.ts';
import { closedInTheEnd } from 'platform/service/test-end.ts';
import { OPERATOR, temporaryFolder } from 'platform/service/testing.ts';
import { openJobClient, startJobServer, type JobServer } from './job-server.ts';

const NO_ERROR = 0;
const folder = temporaryFolder();
const identityOf = (name: string) => openIdentity({ name, ...identityFilesOf(folder.path, name) });
beforeAll(() => createKeys(folder.path, ['memory', OPERATOR]));
afterAll(() => folder.remove());

/** @returns a server that has accepted this connection, over which nothing was sent */
async function acceptedBy(server: JobServer): Promise<Socket> {
  const [host, port] = server.address.split(':');
  const socket = connect(Number(port), host);
  await once(socket, 'connect');
  // connections are accepted in turn
  const client = openJobClient(server.address, identityOf(OPERATOR));
  await client.list();
  client.close();
  return socket;
}

it('a server that drains closes a connection that was being made when it began', async () => {
  const server = await startJobServer(identityOf('memory'));
  closedInTheEnd(() => server.drain(0));
  const socket = await acceptedBy(server);
  const drained = server.drain(600_000);
  const { certFile, caFile } = identityFilesOf(folder.path, OPERATOR);
  const [pem, ca] = [certFile, caFile].map((file) => readFileSync(file, 'utf8'));
  const tls = connectTls({
    socket,
    cert: pem,
    key: pem,
    ca,
    ALPNProtocols: ['h2'],
    checkServerIdentity: () => undefined,
  });
  const session = connectHttp2(`https://${server.address}`, { createConnection: () => tls });
  expect((await once(session, 'goaway'))[0]).toBe(NO_ERROR);
  await drained;
});

it('a connection that says nothing holds up no drain beyond its time', async () => {
  const server = await startJobServer(identityOf('memory'));
  const socket = await acceptedBy(server);
  await server.drain(50);
  socket.destroy();
});
