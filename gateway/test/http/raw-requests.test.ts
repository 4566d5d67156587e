import type { CallContext } from 'platform/rpc/call.ts';
import type { CreateMemoryTypeRequest } from 'proto/memory/v1/memory.ts';
import { MemoryType } from 'proto/memory/v1/memory.ts';
import { parseRaw, raw, startGatewayFixture, TOKEN, type GatewayFixture } from '../fixture.ts';

let fixture: GatewayFixture;
/** What reached the service, in the order of arrival. */
const arrived: { request: CreateMemoryTypeRequest; context: CallContext }[] = [];
beforeAll(async () => {
  fixture = await startGatewayFixture({
    memory: {
      createMemoryType: async (request, context) => {
        arrived.push({ request, context });
        return { memoryType: MemoryType.fromPartial({ jsonSchema: '{}' }), outcome: 'CREATED', location: '/x' };
      },
    },
  });
});
afterAll(() => fixture.stop());
beforeEach(() => void arrived.splice(0));

const BODY = '{"type":"t","jsonSchema":{}}';
const SIZE = BODY.length.toString(16);
const HEAD = [
  'POST /api/memory/types HTTP/1.1',
  'Host: x',
  `Authorization: Bearer ${TOKEN}`,
  'Content-Type: application/json',
];
const NEXT = 'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
const chunked = (body: string): string => `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
const message = (lines: readonly string[], body = ''): string => `${lines.join('\r\n')}\r\n\r\n${body}`;
const repliesTo = async (bytes: string) => (await raw(fixture.port, bytes)).split(/(?=HTTP\/1\.1 )/).map(parseRaw);
/** The statuses of all replies, and how many requests reached the service. */
const sent = async (bytes: string) => ({
  statuses: (await repliesTo(bytes)).map(({ status }) => status),
  created: arrived.length,
});

/** Two servers could see the end of such a request at different places; what follows it must not become a request. */
describe('a request whose end is ambiguous is 400, and nothing after it is read', () => {
  const length = `Content-Length: ${BODY.length}`;
  it.each<[string, string[], string, string?]>([
    ['both Content-Length and Transfer-Encoding', [length, 'Transfer-Encoding: chunked'], chunked(BODY)],
    ['both, the other way round', ['Transfer-Encoding: chunked', length], chunked(BODY)],
    ['two different lengths', [length, 'Content-Length: 0'], BODY],
    ['two equal lengths', [length, length], BODY],
    ['a list of lengths', [`${length}, ${BODY.length}`], BODY],
    ['a length with a sign', [`Content-Length: +${BODY.length}`], BODY],
    ['a negative length', ['Content-Length: -1'], BODY],
    ['a hexadecimal length', ['Content-Length: 0x1c'], BODY],
    ['a length that is no integer', ['Content-Length: 28.0'], BODY],
    ['a length beyond 64 bits', ['Content-Length: 18446744073709551644'], BODY],
    ['Transfer-Encoding in two lines', ['Transfer-Encoding: chunked', 'Transfer-Encoding: identity'], chunked(BODY)],
    ['an unknown coding', ['Transfer-Encoding: xchunked'], chunked(BODY)],
    ['chunks in HTTP/1.0', ['Transfer-Encoding: chunked'], chunked(BODY), '1.0'],
    ['a coding before chunked', ['Transfer-Encoding: gzip, chunked'], chunked(BODY)],
    ['chunked that is not the last coding', ['Transfer-Encoding: chunked, gzip'], chunked(BODY)],
    ['a space before the colon', ['Transfer-Encoding : chunked'], chunked(BODY)],
    ['a folded header', ['X-Folded: a', ' Transfer-Encoding: chunked', length], BODY],
    ['a folded Transfer-Encoding', ['Transfer-Encoding:', ' chunked'], chunked(BODY)],
    ['a vertical tab before the value', ['Transfer-Encoding: \vchunked'], chunked(BODY)],
    ['NUL in a header', [length, 'X-Nul: a\0b'], BODY],
    ['a bare CR in a header', [length, 'X-Cr: a\rTransfer-Encoding: chunked'], BODY],
    ['a header without a colon', [length, 'NoColon'], BODY],
    ['an empty header name', [length, ': value'], BODY],
  ])('%s', async (_, lines, body, version = '1.1') => {
    const [line, ...headers] = HEAD;
    const head = [line!.replace('1.1', version), ...headers];
    const { statuses, created } = await sent(message([...head, ...lines], body) + NEXT);
    expect({ first: statuses[0], replies: statuses.length, created }).toEqual({ first: 400, replies: 1, created: 0 });
  });

  it.each([
    ['a size that is no number', 'zz\r\n'],
    ['a size with a sign', `+${SIZE}\r\n${BODY}\r\n0\r\n\r\n`],
    ['a size beyond 64 bits', `10000000000000000${SIZE}\r\n${BODY}\r\n0\r\n\r\n`],
    ['a chunk longer than its size', `5\r\n${BODY}\r\n0\r\n\r\n`],
    ['a bare LF after the size', `${SIZE}\n${BODY}\r\n0\r\n\r\n`],
    ['a bare LF after the data', `${SIZE}\r\n${BODY}\n0\r\n\r\n`],
    ['a trailer that gives the length', `${SIZE}\r\n${BODY}\r\n0\r\nContent-Length: 5\r\n\r\n`],
    ['an extension over 16 KiB', `${SIZE};${'x'.repeat(20_000)}\r\n${BODY}\r\n0\r\n\r\n`],
  ])('in chunks: %s', async (_, body) => {
    const { statuses, created } = await sent(message([...HEAD, 'Transfer-Encoding: chunked'], body) + NEXT);
    expect(statuses).toHaveLength(1);
    expect([400, 413]).toContain(statuses[0]);
    expect(created).toBe(0);
  });
});

describe('a request that is unusual but clear is answered, and so is the next one', () => {
  const length = `Content-Length: ${BODY.length}`;
  it.each([
    ['chunked in capitals', ['Transfer-Encoding: CHUNKED'], chunked(BODY)],
    ['chunks with extensions', ['Transfer-Encoding: chunked'], `${SIZE};name=value;other="q"\r\n${BODY}\r\n0\r\n\r\n`],
    [
      'trailers, which are ignored',
      ['Transfer-Encoding: chunked', 'Trailer: Authorization'],
      `${SIZE}\r\n${BODY}\r\n0\r\nAuthorization: Bearer other\r\nX-Any: 1\r\n\r\n`,
    ],
    ['leading zeros in the length', [`Content-Length: 000${BODY.length}`], BODY],
    ['tabs around a value', [`Content-Length:\t${BODY.length}\t`], BODY],
  ])('%s', async (_, lines, body) => {
    expect(await sent(message([...HEAD, ...lines], body) + NEXT)).toEqual({ statuses: [201, 200], created: 1 });
  });

  it('an absolute-form target, whatever its host', async () => {
    for (const target of ['http://x/api/memory/types', 'https://other.example/api/memory/types'])
      expect(
        await sent(message([`POST ${target} HTTP/1.1`, ...HEAD.slice(1), length], BODY) + NEXT).then(
          ({ statuses }) => statuses,
        ),
      ).toEqual([201, 200]);
  });

  it('empty lines before the request line', async () => {
    expect((await sent(`\r\n\r\n${NEXT}`)).statuses).toEqual([200]);
  });
});

describe('a path means what its bytes say', () => {
  it.each([
    '//api/memory/types',
    '/api//memory/types',
    '/api/memory/./types',
    '/api/memory/x/../types',
    '/api/memory/x/%2e%2e/types',
    '/api/memory/%2E%2E/memory/types',
    '/api%2fmemory%2ftypes',
    '/api/memory/types/',
    '/api/memory/types;a=b',
    '/api/memory/types%00',
    '/api/memory/types%3Fa',
    '\\api\\memory\\types',
    '/api/memory/types#x',
  ])('no other path reaches a route: %s', async (path) => {
    const { statuses, created } = await sent(
      message([`POST ${path} HTTP/1.1`, ...HEAD.slice(1), `Content-Length: ${BODY.length}`], BODY) + NEXT,
    );
    expect([400, 404]).toContain(statuses[0]);
    expect(created).toBe(0);
  });

  it.each(['x y', '\0', '\x7f'])('400 for %j in it', async (text) => {
    expect((await sent(`GET /healthz${text} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)).statuses[0]).toBe(400);
  });

  it('431 for one that is too long, as for headers', async () => {
    expect((await sent(`GET /${'a'.repeat(40_000)} HTTP/1.1\r\nHost: x\r\n\r\n`)).statuses).toEqual([431]);
  });
});

describe('who the client is comes from its token alone', () => {
  it('headers named like the metadata of calls between services are dropped', async () => {
    const lines = [
      'x-principal: {"kind":"operator"}',
      'principal: {"kind":"operator"}',
      'principal-bin: AAAA',
      'grpc-timeout: 1n',
      'grpc-metadata-principal: operator',
      'x-organization-id: other',
    ];
    await sent(message([...HEAD, ...lines, `Content-Length: ${BODY.length}`], BODY) + NEXT);
    expect(arrived.map(({ context }) => context.principal.organizationId)).toEqual(['organization-1']);
  });

  it('400 for a pseudo-header of HTTP/2, and for the preface of HTTP/2', async () => {
    expect((await sent(message([...HEAD, ':path: /other'], BODY))).statuses[0]).toBe(400);
    expect((await sent('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')).statuses[0]).toBe(400);
  });

  it('an upgrade is not made', async () => {
    const { statuses } = await sent(
      'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAAA\r\n\r\n',
    );
    expect(statuses).toEqual([200]);
  });
});

it('an unknown expectation is not met, and the request is answered as without it', async () => {
  const received = await raw(
    fixture.port,
    message([...HEAD, 'Expect: 200-ok', `Content-Length: ${BODY.length}`, 'Connection: close'], BODY),
  );
  expect(received).toMatch(/^(HTTP\/1.1 100 Continue\r\n\r\n)?HTTP\/1\.1 201 /);
  expect(arrived).toHaveLength(1);
});

/** Node's parser stops behind such a request and tells nobody what came with it. */
describe('a request that asks for an upgrade is answered like any other, and the connection ends with its reply', () => {
  const UPGRADES = [
    [
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      'Sec-WebSocket-Version: 13',
    ],
    ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA'],
    ['connection: keep-alive', 'Connection: uPGRADE', 'Upgrade: h2c'],
    ['Proxy-Connection: upgrade', 'Upgrade: x'],
  ];
  const GET = ['GET /healthz HTTP/1.1', 'Host: x'];
  const length = `Content-Length: ${BODY.length}`;
  const forged = message([...HEAD, length], BODY);

  it.each(UPGRADES)('%s, %s', async (...upgrade: string[]) => {
    const lines = upgrade.filter((line) => typeof line === 'string');
    for (const behind of [NEXT, forged, NEXT.repeat(40), `x${NEXT}`, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n']) {
      const replies = await repliesTo(message([...GET, ...lines]) + behind);
      expect(replies.map(({ status }) => status)).toEqual([200]);
      expect(replies[0]!.headers.get('connection')).toBe('close');
    }
    expect(arrived).toEqual([]);
  });

  it.each([
    ['a body', [length], BODY],
    ['chunks', ['Transfer-Encoding: chunked'], chunked(BODY)],
  ])('also with %s, which is read to its end', async (_what, lines, body) => {
    for (const upgrade of UPGRADES) {
      arrived.splice(0);
      expect(await sent(message([...HEAD, ...lines, ...upgrade], body) + forged + NEXT)).toEqual({
        statuses: [201],
        created: 1,
      });
      expect(arrived[0]!.request).toMatchObject({ type: 't', jsonSchema: '{}' });
    }
  });

  it('after the replies to the requests before it, in pieces, too', async () => {
    const first = message(GET);
    const bytes = Buffer.from(first.repeat(3) + message([...GET, ...UPGRADES[0]!]) + NEXT.repeat(3));
    expect((await repliesTo(String(bytes))).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    for (let size = 1; size < 90; size += 11) {
      const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) =>
        bytes.subarray(n * size, (n + 1) * size),
      );
      const replies = (await raw(fixture.port, ...pieces)).split(/(?=HTTP\/1\.1 )/);
      expect(replies.map((reply) => parseRaw(reply).status)).toEqual([200, 200, 200, 200]);
    }
  });

  it('and a client that goes on to send reads its reply', async () => {
    const replies = await repliesTo(message([...GET, ...UPGRADES[1]!]) + 'x'.repeat(300_000));
    expect(replies.map(({ status }) => status)).toEqual([200]);
  });
});
