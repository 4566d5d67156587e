import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { MemoryObject, MemoryType } from 'proto/memory/v1/memory.ts';
import { serverToken } from 'platform/service/testing.ts';
import { raw, startGatewayFixture, TOKEN, type GatewayFixture } from '../fixture.ts';

/** More than the kernel's buffers take. */
const PAGE_BYTES = 16_000_000;
const sizes: Record<string, number> = { page: PAGE_BYTES, medium: 300_000, small: 100 };
const calls: string[] = [];
let fixture: GatewayFixture;
beforeAll(async () => {
  fixture = await startGatewayFixture(
    {
      // tokens named "<organization>.<token>"
      decide: ({ bearer }) => ({ ...serverToken(bearer.split('.', 1)[0] as string), subject: bearer }),
      memory: {
        getMemoryType: async ({ id }) => {
          calls.push(id);
          const description = 'x'.repeat(sizes[id] as number);
          return { memoryType: { ...MemoryType.decode(new Uint8Array()), id, description } };
        },
        listMemoryTypes: async () => ({ items: [] }),
        createMemoryObject: async ({ content }) => {
          calls.push('write');
          const key = 'x'.repeat(sizes.medium as number);
          const memoryObject = { ...MemoryObject.decode(new Uint8Array()), key, content: content as string };
          return { memoryObject, outcome: 'CREATED' as const, location: '' };
        },
      },
    },
    { BYTES_IN_FLIGHT_PER_TOKEN: String(1.5 * PAGE_BYTES), BYTES_IN_FLIGHT: String(4 * PAGE_BYTES) },
  );
});
afterAll(() => fixture.stop());
beforeEach(() => {
  calls.length = 0;
});
const get = (id: string, token: string) => fixture.request(`/api/memory/types/${id}`, { token });
/** Asks for a page and reads nothing of it; resolves when its first bytes have arrived. */
async function openPage(token: string): Promise<Socket> {
  const socket = connect(fixture.port, '127.0.0.1');
  socket.on('error', () => undefined);
  socket.write(`GET /api/memory/types/page HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`);
  await once(socket, 'readable');
  return socket;
}

describe('replies that a client does not read', () => {
  it('leave no room for another large one of the same token: 503, before the service is called', async () => {
    const socket = await openPage('o1.a');
    calls.length = 0;
    const refused = await get('page', 'o1.a');
    expect([refused.status, refused.json.code, refused.headers.get('retry-after')]).toEqual([503, 'unavailable', '1']);
    expect(calls).toEqual([]);
    expect((await fixture.request('/api/memory/types', { token: 'o1.a' })).status).toBe(200);

    const ended = once(socket, 'end');
    let received = 0;
    socket.on('data', (chunk: Buffer) => {
      received += chunk.length;
      if (received > PAGE_BYTES) socket.end();
    });
    await ended;
    expect((await get('page', 'o1.a')).status).toBe(200);
  });
  it('leave room for other organizations, whatever tokens the first one makes', async () => {
    const sockets = [await openPage('o2.a'), await openPage('o2.b')];
    expect((await get('page', 'o2.c')).status).toBe(503);
    expect((await get('page', 'o3.a')).status).toBe(200);
    for (const socket of sockets) socket.destroy();
  });
  it('leave room again when the client has gone', async () => {
    const socket = await openPage('o4.a');
    socket.destroy();
    let status = 503;
    while (status === 503) ({ status } = await get('page', 'o4.a'));
    expect(status).toBe(200);
  });
  it('take no room for a client that left while its token was checked', async () => {
    const hold = Promise.withResolvers<void>();
    const small = await startGatewayFixture(
      { onBatch: () => hold.promise, memory: { listMemoryTypes: async () => ({ items: [] }) } },
      { BYTES_IN_FLIGHT: String(1 << 20), BYTES_IN_FLIGHT_PER_TOKEN: String(1 << 19), MAX_BODY_BYTES: '100000' },
    );
    for (let client = 0; client < 20; client++) {
      const socket = connect(small.port, '127.0.0.1');
      socket.write(`GET /api/memory/types HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`);
      await once(socket, 'connect');
      // answered after the request above has arrived
      await raw(small.port, 'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
      socket.destroy();
    }
    await raw(small.port, 'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    hold.resolve();
    expect((await small.request('/api/memory/types')).status).toBe(200);
    await small.stop();
  });
  it('never cost the reply to a write, however large it is', async () => {
    const socket = await openPage('o5.a');
    const written = await fixture.request('/api/memory/objects', {
      method: 'POST',
      token: 'o5.a',
      body: { type: 't', content: {} },
    });
    expect([written.status, (written.json.key as string).length]).toEqual([201, sizes.medium]);
    expect(calls.filter((call) => call === 'write')).toEqual(['write']);
    socket.destroy();
  });
});

describe('a reply that is larger than expected', () => {
  it('is asked for once more, and the next one of this token is expected to be as large', async () => {
    for (const expected of [['medium', 'medium'], ['medium'], ['medium']]) {
      calls.length = 0;
      const { status, json } = await get('medium', 'o6.a');
      expect([status, (json.description as string).length]).toEqual([200, sizes.medium]);
      expect(calls).toEqual(expected);
    }
    calls.length = 0;
    await get('medium', 'o6.b');
    expect(calls).toEqual(['medium', 'medium']);
  });
});

it.each([
  ['o7', 'Content-Length: 1000000', 1_000_000],
  // it may become as long as a body may be
  ['o8', 'Transfer-Encoding: chunked', 1_048_576],
])('a body has room, or is rejected with 503 before it is read: %s, %s', async (organization, header, length) => {
  const held: Socket[] = [];
  const head = `POST /api/memory/objects HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${organization}.a\r\nContent-Type: application/json\r\n${header}\r\nExpect: 100-continue\r\n\r\n`;
  let reply = '';
  while (!reply.startsWith('HTTP/1.1 503')) {
    const socket = connect(fixture.port, '127.0.0.1');
    held.push(socket);
    socket.write(head);
    reply = String((await once(socket, 'data'))[0]);
    expect(reply).toMatch(/^HTTP\/1\.1 (100|503) /);
  }
  expect(held.length).toBe(Math.floor((1.5 * PAGE_BYTES) / (length + 65_536)) + 1);
  for (const socket of held) socket.destroy();
  expect((await get('small', `${organization}.b`)).status).toBe(200);
});

it.each<[Record<string, string>, string]>([
  [{ BYTES_IN_FLIGHT: '6422527' }, 'BYTES_IN_FLIGHT is 6422527, but MAX_BODY_BYTES 3145728 needs at least 6422528'],
  [
    { BYTES_IN_FLIGHT_PER_TOKEN: '3211263' },
    'BYTES_IN_FLIGHT_PER_TOKEN is 3211263, but MAX_BODY_BYTES 3145728 needs at least 3211264',
  ],
])('the gateway does not start with %j, for which the largest body is too large', (env, message) =>
  expect(startGatewayFixture({}, { MAX_BODY_BYTES: '3145728', ...env })).rejects.toThrow(message),
);
