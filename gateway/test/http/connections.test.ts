import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { MemoryType } from 'proto/memory/v1/memory.ts';
import { parseRaw, raw, startGatewayFixture, TOKEN, type GatewayFixture } from '../fixture.ts';

const get = (path: string, ...headers: string[]): string =>
  `GET ${path} HTTP/1.1\r\n${['Host: x', `Authorization: Bearer ${TOKEN}`, ...headers].join('\r\n')}\r\n\r\n`;
const typeOf = (id: string, bytes = 0): MemoryType => ({
  ...MemoryType.decode(new Uint8Array()),
  id,
  description: 'x'.repeat(bytes),
});

/** Answers look-ups of memory types, those named "large" with so many bytes, and counts those under way and all. */
function countedTypes(bytes = 0) {
  const counts = { underWay: 0, most: 0, all: 0 };
  const getMemoryType = async ({ id }: { id: string }) => {
    counts.all++;
    counts.most = Math.max(counts.most, ++counts.underWay);
    await new Promise(setImmediate);
    counts.underWay--;
    return { memoryType: typeOf(id, id === 'large' ? bytes : 0) };
  };
  return { counts, stubs: { memory: { getMemoryType } } };
}
async function open(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}
const bodiesOf = (received: string) => received.split(/(?=HTTP\/1\.1 )/).map(parseRaw);

describe('the requests of one connection', () => {
  const { counts, stubs } = countedTypes();
  let fixture: GatewayFixture;
  beforeAll(async () => {
    fixture = await startGatewayFixture(stubs);
  });
  afterAll(() => fixture.stop());
  beforeEach(() => Object.assign(counts, { underWay: 0, most: 0, all: 0 }));

  it('are handled one at a time, in their order, however many are sent at once', async () => {
    const ids = Array.from({ length: 600 }, (_, index) => `id-${index}`);
    const requests = ids.map((id, index) =>
      get(`/api/memory/types/${id}`, ...(index === ids.length - 1 ? ['Connection: close'] : [])),
    );
    const replies = bodiesOf(await raw(fixture.port, requests.join('')));
    expect(replies.map(({ json }) => json.id)).toEqual(ids);
    expect(counts).toEqual({ underWay: 0, most: 1, all: 600 });
  });
  it('are begun one in a turn, so that other connections have their turns in between', async () => {
    let turns = 0;
    let counting = true;
    const count = (): void => {
      turns++;
      if (counting) setImmediate(count);
    };
    setImmediate(count);
    const probes = 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(1_000);
    const received = await raw(fixture.port, probes + get('/healthz', 'Connection: close'));
    counting = false;
    expect(bodiesOf(received)).toHaveLength(1_001);
    expect(turns).toBeGreaterThan(1_000);
  });
  it('are handled one at a time also when their bytes arrive one by one', async () => {
    const bytes = Buffer.from(get('/api/memory/types/a') + get('/api/memory/types/b', 'Connection: close'));
    const socket = await open(fixture.port);
    socket.setNoDelay(true);
    let received = '';
    socket.on('data', (chunk) => (received += chunk.toString()));
    for (const byte of bytes) {
      socket.write(Buffer.from([byte]));
      await new Promise(setImmediate);
    }
    await once(socket, 'close');
    expect(bodiesOf(received).map(({ json }) => json.id)).toEqual(['a', 'b']);
    expect(counts.most).toBe(1);
  });
  it('may have bodies, also chunked ones that look like requests', async () => {
    const inner = get('/api/memory/types/inner').repeat(20);
    const post = (headers: string, body: string): string =>
      `POST /api/memory/types HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Type: application/json\r\n${headers}\r\n\r\n${body}`;
    const replies = bodiesOf(
      await raw(
        fixture.port,
        post(`Content-Length: ${inner.length}`, inner) +
          get('/api/memory/types/between') +
          post('Transfer-Encoding: chunked', `${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`) +
          get('/api/memory/types/last', 'Connection: close'),
      ),
    );
    expect(replies.map(({ json }) => json.code ?? json.id)).toEqual([
      'malformed_json',
      'between',
      'malformed_json',
      'last',
    ]);
    expect(counts).toEqual({ underWay: 0, most: 1, all: 2 });
  });
});

describe('a client that does not read', () => {
  const REPLY = 1_000_000;

  it('gets no further request handled, while its neighbours are answered', async () => {
    const { counts, stubs } = countedTypes(REPLY);
    const fixture = await startGatewayFixture(stubs);
    const greedy = await open(fixture.port);
    greedy.pause();
    greedy.write(get('/api/memory/types/large').repeat(600));
    for (let neighbour = 0; neighbour < 100; neighbour++)
      expect((await fixture.request(`/api/memory/types/${neighbour}`)).json.id).toBe(String(neighbour));
    // the kernel's buffers take a few replies
    expect(counts.all - 100).toBeLessThan(30);
    greedy.destroy();
    await fixture.stop();
  });
  it('is disconnected after READ_TIMEOUT_MS, and one that goes on reading is not', async () => {
    const { stubs } = countedTypes(REPLY);
    const fixture = await startGatewayFixture(stubs, { READ_TIMEOUT_MS: '100', CONNECTIONS_PER_ADDRESS: '1' });
    const idle = await open(fixture.port);
    idle.pause();
    idle.write(get('/api/memory/types/large').repeat(50));
    // until it is disconnected, there is no room for another connection
    for (let reply = ''; !reply.startsWith('HTTP/1.1 200');)
      reply = await raw(fixture.port, get('/healthz', 'Connection: close')).catch(() => '');
    idle.destroy();

    const reader = await open(fixture.port);
    reader.write(get('/api/memory/types/large').repeat(49) + get('/api/memory/types/large', 'Connection: close'));
    let received = 0;
    for await (const chunk of reader) received += (chunk as Buffer).length;
    expect(received).toBeGreaterThan(50 * REPLY);
    await fixture.stop();
  });
});

describe('connections', () => {
  it('beyond CONNECTIONS_PER_ADDRESS are answered 503 with Retry-After, until one of the others closes', async () => {
    const fixture = await startGatewayFixture({}, { CONNECTIONS_PER_ADDRESS: '2' });
    const [first, second] = [await open(fixture.port), await open(fixture.port)];
    const refused = parseRaw(await raw(fixture.port));
    expect([refused.status, refused.json.code, refused.headers.get('retry-after')]).toEqual([503, 'unavailable', '1']);
    expect(refused.json.requestId).toBe(refused.headers.get('x-request-id'));
    first.destroy();
    for (let reply = ''; !reply.startsWith('HTTP/1.1 200');)
      reply = await raw(fixture.port, get('/healthz', 'Connection: close')).catch(() => '');
    second.destroy();
    await fixture.stop();
  });
});
