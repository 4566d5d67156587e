import fc from 'fast-check';
import { MemoryObject } from 'proto/memory/v1/memory.ts';
import { makeJsonWriter } from '../../src/contract/json-writer.ts';
import { restMethods } from '../../src/contract/rest-methods.ts';
import { serviceRoutes, type ServiceRoute } from '../../src/contract/routes.ts';

const writer = makeJsonWriter();
const textOf = (pieces: readonly Uint8Array[]): string => Buffer.concat(pieces).toString();

it('writes each string as JSON.stringify does, in the order of the calls, however long they are', () => {
  const short = fc.string({ unit: fc.oneof(fc.constantFrom('"', '\\', '\n', '\u0000', '\u007f', '/'), fc.string()) });
  const long = fc.tuple(fc.constantFrom('a', 'é', '"', '😀'), fc.integer({ min: 65_500, max: 65_540 }));
  const strings = fc.array(
    fc.oneof(
      { weight: 5, arbitrary: short },
      long.map(([unit, count]) => unit.repeat(count)),
    ),
  );
  fc.assert(
    fc.property(strings, (values) => {
      writer.begin();
      writer.ascii('[');
      values.forEach((value, i) => {
        if (i > 0) writer.ascii(',');
        const bytes = Buffer.from(`x${value}y`);
        const json = Buffer.from(JSON.stringify(value));
        if (i % 3 === 0) writer.string(bytes, 1, bytes.length - 1);
        else if (i % 3 === 1) writer.json(json, 0, json.length);
        else writer.piece(json);
      });
      writer.ascii(']');
      expect(textOf(writer.end())).toBe(JSON.stringify(values));
    }),
    { numRuns: 200 },
  );
});

it('writes nothing of a reply that broke off into the next one', () => {
  const { method } = serviceRoutes(restMethods())
    .map(({ route }) => route as ServiceRoute)
    .find(({ method }) => method.path.endsWith('/ListMemoryObjects'))!;
  const bodyOf = (message: Buffer): string => textOf((method.responseDeserialize(message) as { body: Buffer[] }).body);
  const item = MemoryObject.encode({ ...MemoryObject.decode(new Uint8Array()), key: 'secret', content: '1' }).finish();
  const list = Buffer.concat([Buffer.from([(2 << 3) | 2, item.length]), item]);
  expect(bodyOf(list)).toContain('"key":"secret"');
  // an item whose key says that it is longer than all that follows
  const broken = Buffer.from([(2 << 3) | 2, 3, (4 << 3) | 2, 9, 0x78]);
  expect(() => bodyOf(Buffer.concat([list, broken]))).toThrow(RangeError);
  expect(bodyOf(Buffer.alloc(0))).toBe('{"total":0,"items":[]}');
});
