import { connect, type Socket } from 'node:net';
import { MemoryObject } from 'proto/memory/v1/memory.ts';
import { FREE_CHUNKS, MIN_MEAN_BYTES } from 'platform/core/body-buffer.ts';
import { parseRaw, raw, startGatewayFixture, TOKEN, type GatewayFixture } from '../fixture.ts';

const MIB = 1 << 20;
let fixture: GatewayFixture;
beforeAll(async () => {
  fixture = await startGatewayFixture({
    memory: {
      createMemoryObject: async ({ content }) => ({
        memoryObject: { ...MemoryObject.decode(new Uint8Array()), key: String(content?.length), content: '{}' },
        outcome: 'CREATED' as const,
        location: '',
      }),
    },
  });
});
afterAll(() => fixture.stop());

/** A legal body of so many bytes. */
function bodyOf(bytes: number): Buffer {
  const empty = JSON.stringify({ type: 't', content: { a: '' } });
  return Buffer.from(empty.replace('""', `"${'x'.repeat(bytes - empty.length)}"`));
}
const lengthOfContent = (bytes: number): string => String(bytes - '{"type":"t","content":}'.length);
function split(body: Buffer, size: number): Buffer[] {
  return Array.from({ length: Math.ceil(body.length / size) }, (_, i) => body.subarray(i * size, (i + 1) * size));
}
const chunked = (body: Buffer, size: number): string =>
  `${split(body, size)
    .map((chunk) => `${chunk.length.toString(16)}\r\n${chunk.toString()}\r\n`)
    .join('')}0\r\n\r\n`;
const head = (header: string): string =>
  `POST /api/memory/objects HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\n` +
  `Content-Type: application/json\r\nConnection: close\r\n${header}\r\n\r\n`;

/** Writes each segment in a turn of its own, until the reply is there. */
async function send(segments: Iterable<Buffer | string>) {
  const socket: Socket = connect(fixture.port, '127.0.0.1');
  socket.setNoDelay(true);
  let received = '';
  let written = 0;
  const closed = new Promise<void>((resolve) => {
    socket.on('data', (chunk) => (received += chunk.toString()));
    socket.on('error', () => undefined);
    socket.on('close', () => resolve());
  });
  for (const segment of segments) {
    if (received !== '') break;
    socket.write(segment);
    written += segment.length;
    await new Promise(setImmediate);
  }
  await closed;
  return { written, ...parseRaw(received) };
}

describe('a body is read', () => {
  it.each([
    ['1 MiB in chunks of 64 KiB', MIB, 65_536],
    ['1 MiB in chunks of 1 KiB', MIB, 1_024],
    // TCP may split some of them
    ['1 MiB in the smallest chunks that a large body may have', MIB, MIN_MEAN_BYTES + 8],
    ['1,000 bytes in chunks of one byte', 1_000, 1],
    ['as many chunks of one byte as a body may have', FREE_CHUNKS, 1],
  ])('of %s', async (_, bytes, chunkBytes) => {
    const { status, json } = await send([head('Transfer-Encoding: chunked'), chunked(bodyOf(bytes), chunkBytes)]);
    expect([status, json.key]).toEqual([201, lengthOfContent(bytes)]);
  });
  it('of 1,000 bytes whose length is declared, when they arrive one by one', async () => {
    const { status, json } = await send([head('Content-Length: 1000'), ...split(bodyOf(1_000), 1)]);
    expect([status, json.key]).toEqual([201, lengthOfContent(1_000)]);
  });
});

describe('a chunked body that nobody reads', () => {
  it.each([
    ['of a request that takes none', 'GET /healthz', '', 200],
    ['of a request without a token', 'POST /api/memory/objects', '', 401],
    ['of an unknown path', 'POST /nope', '', 404],
    ['of another media type', 'POST /api/memory/objects', `Authorization: Bearer ${TOKEN}\r\n`, 415],
  ])('%s is not parsed: the connection ends with the reply', async (_, line, headers, status) => {
    const start = `${line} HTTP/1.1\r\nHost: x\r\n${headers}Transfer-Encoding: chunked\r\n\r\n`;
    const next = 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n';
    const replies = await raw(fixture.port, `${start}1\r\na\r\n`, `${'1\r\na\r\n'.repeat(20_000)}0\r\n\r\n${next}`);
    expect(replies.match(/HTTP\/1\.1 \d+/g)).toEqual([`HTTP/1.1 ${status}`]);
    expect(parseRaw(replies).headers.get('connection')).toBe('close');
  });
});

describe('a body in many small chunks is 400', () => {
  const refusal = [400, 'invalid_request', expect.stringContaining('too many small chunks')];

  it('when it is chunked, also for a client that sends all of it first', async () => {
    const { status, json } = await send([head('Transfer-Encoding: chunked') + chunked(bodyOf(MIB), 1)]);
    expect([status, json.code, json.error]).toEqual(refusal);
  });
  it('when its length is declared and its bytes arrive one by one', async () => {
    const bytes = MIB / 2;
    const { status, json, written } = await send([head(`Content-Length: ${bytes}`), ...split(bodyOf(bytes), 1)]);
    expect([status, json.code, json.error]).toEqual(refusal);
    expect(written).toBeLessThan(bytes);
  });
});
