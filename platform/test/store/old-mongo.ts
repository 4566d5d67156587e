import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { BSON } from 'mongodb';

/** A server that answers every request with the `hello` of a MongoDB of this wire version. */
export async function oldMongo(maxWireVersion: number): Promise<Server & { readonly url: string }> {
  const hello = BSON.serialize({
    ok: 1,
    ismaster: true,
    isWritablePrimary: true,
    setName: 'old',
    hosts: [],
    minWireVersion: 0,
    maxWireVersion,
    maxBsonObjectSize: 16_777_216,
    maxMessageSizeBytes: 48_000_000,
    maxWriteBatchSize: 100_000,
    localTime: new Date(),
  });
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (request) => {
      const legacy = request.readInt32LE(12) === 2004; // OP_QUERY, answered by OP_REPLY; otherwise OP_MSG
      const body = legacy ? Buffer.alloc(20) : Buffer.alloc(5);
      if (legacy) body.writeInt32LE(1, 16);
      const header = Buffer.alloc(16);
      header.writeInt32LE(16 + body.length + hello.length, 0);
      header.writeInt32LE(request.readInt32LE(4), 8);
      header.writeInt32LE(legacy ? 1 : 2013, 12);
      socket.write(Buffer.concat([header, body, hello]));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return Object.assign(server, { url: `mongodb://127.0.0.1:${(server.address() as AddressInfo).port}/` });
}
