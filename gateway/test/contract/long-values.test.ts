import protobuf from 'protobufjs';
import { MemoryObject } from 'proto/memory/v1/memory.ts';
import { startGatewayFixture } from '../fixture.ts';
import { slicesOf } from '../../src/contract/json-text.ts';
import { restMethods } from '../../src/contract/rest-methods.ts';
import { serviceRoutes, type ServiceRoute } from '../../src/contract/routes.ts';

const CONTENT = JSON.stringify({ text: 'é😀'.repeat(50_000) });
const objectOf = (key: string, content: string) => ({ ...MemoryObject.decode(new Uint8Array()), key, content });

it('long values of a response stay bytes of its message: they are neither decoded nor copied', () => {
  const { method } = serviceRoutes(restMethods())
    .map(({ route }) => route as ServiceRoute)
    .find(({ method }) => method.path.endsWith('/ListMemoryObjects'))!;
  const memoryObject = MemoryObject.encode(objectOf('a', CONTENT)).finish();
  // field 2 is the list of objects
  const message = Buffer.from(
    protobuf.Writer.create()
      .uint32((2 << 3) | 2)
      .bytes(memoryObject)
      .finish(),
  );
  const { body } = method.responseDeserialize(message) as { body: readonly Uint8Array[] };
  const shared = body.filter(({ buffer }) => buffer === message.buffer);
  expect(shared.map(({ length }) => length)).toEqual([Buffer.byteLength(CONTENT)]);
  expect([...slicesOf(body, 65_536)].every(({ length }) => length <= 65_536)).toBe(true);
});

it('a page of long and short values arrives whole, also compressed', async () => {
  const contents = [CONTENT, '1', CONTENT, '{}', CONTENT];
  const fixture = await startGatewayFixture({
    memory: {
      listMemoryObjects: async () => ({
        items: contents.map((content, i) => objectOf(String(i), content)),
        total: contents.length,
      }),
    },
  });
  for (const coding of ['identity', 'gzip']) {
    const { status, json } = await fixture.request('/api/memory/objects?type=t', {
      headers: { 'accept-encoding': coding },
    });
    expect(status).toBe(200);
    const items = json.items as { key: string; content: unknown }[];
    expect(items.map(({ content }) => JSON.stringify(content))).toEqual(contents);
  }
  await fixture.stop();
});
