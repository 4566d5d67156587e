import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import type { Resolve } from 'platform/rpc/replica-addresses.ts';
import { closedInTheEnd } from 'platform/service/test-end.ts';

const HEADER_BYTES = 12;
const NAME_ERROR = 3;

/** The end of the question that begins at this place: its name, its type and its class. */
function endOfQuestion(query: Buffer): number {
  let at = HEADER_BYTES;
  while (query[at] !== 0) at += query[at]! + 1;
  return at + 5;
}

/** A(nswer) for the name of the question: IPv4, Internet, not to be kept. */
const answerOf = (address: string): Buffer =>
  Buffer.from([0xc0, HEADER_BYTES, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split('.').map(Number)]);

/** A DNS server that answers every question with `addresses`, as that of a cluster does for a headless service. */
export async function startNameServer(): Promise<{ addresses: string[]; resolve: Resolve }> {
  const server = { addresses: [] as string[] };
  const socket = createSocket('udp4');
  socket.on('message', (query, { port, address }) => {
    const answers = server.addresses.map(answerOf);
    const header = Buffer.from(query.subarray(0, HEADER_BYTES));
    header.writeUInt16BE(0x8180 + (answers.length > 0 ? 0 : NAME_ERROR), 2);
    header.writeUInt16BE(answers.length, 6);
    header.fill(0, 8);
    socket.send(Buffer.concat([header, query.subarray(HEADER_BYTES, endOfQuestion(query)), ...answers]), port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  closedInTheEnd(async () => socket.close());
  const resolver = new Resolver();
  resolver.setServers([`127.0.0.1:${socket.address().port}`]);
  return Object.assign(server, {
    resolve: async (host: string) => (await resolver.resolve4(host)).map((address) => ({ address, family: 4 })),
  });
}
