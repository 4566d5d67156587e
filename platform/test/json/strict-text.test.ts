import fc from 'fast-check';
import { ServiceError } from '../../src/core/errors.ts';
import { strictJson } from '../../src/json/strict-json.ts';
import { strictJsonOf } from '../../src/json/strict-text.ts';

/** The text, or what is wrong with it and where. */
function read(given: string | Buffer): unknown {
  try {
    return strictJsonOf(given).toString();
  } catch (error) {
    const { reason, details, message } = error as ServiceError;
    return [reason, details[0]?.path, details[0]?.message ?? message];
  }
}
const bytes = (text: string): Buffer => Buffer.from(text, 'latin1');
const HALF = 'The string holds a lone surrogate';
const BYTES = 'The bytes are not UTF-8';

it.each<[string | Buffer, unknown]>([
  ['{"a":["\ud800"]}', ['INVALID_REQUEST', '/a/0', HALF]],
  ['{"a\udc00":1}', ['INVALID_REQUEST', '/a\ufffd', HALF]],
  ['["😀\udc00"]', ['INVALID_REQUEST', '/0', HALF]],
  ['["😀"]', '["😀"]'],
  ['\ud800', ['MALFORMED_JSON', undefined, 'The body is not valid JSON']],
  [bytes('{"a":["b","\xff"]}'), ['INVALID_REQUEST', '/a/1', BYTES]],
  [bytes('{"\xef\xbf\xbd":1,"b\xe2\x82":2}'), ['INVALID_REQUEST', '/b\ufffd', BYTES]],
  [bytes('{"a":"\xed\xa0\x80"}'), ['INVALID_REQUEST', '/a', BYTES]],
  [bytes('["\xf0\x9f\x98\x80"]'), '["😀"]'],
  [bytes('["a\xc3'), ['INVALID_REQUEST', '/0', BYTES]],
  [bytes('[1,\xff]'), ['MALFORMED_JSON', undefined, BYTES]],
  // an earlier fault comes first
  [bytes('[1e17,"\xff"]'), ['INVALID_REQUEST', '/0', 'The number is an integer beyond ±(2^53−1)']],
])('%j', (given, expected) => {
  expect(read(given)).toEqual(expected);
});

it('reads well-formed texts and bytes as strictJson does, and never lets any other through', () => {
  fc.assert(
    fc.property(fc.json(), (text) => {
      const expected = (() => {
        try {
          return strictJson(Buffer.from(text)).toString();
        } catch (error) {
          return [(error as ServiceError).reason, (error as ServiceError).details[0]?.path, expect.any(String)];
        }
      })();
      expect(read(text)).toEqual(expected);
      expect(read(Buffer.from(text))).toEqual(expected);
    }),
  );
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 6 }), (some) => {
      const given = Buffer.concat([Buffer.from('["'), some, Buffer.from('"]')]);
      const isText = given.equals(Buffer.from(given.toString()));
      if (!isText) expect(read(given)).toBeInstanceOf(Array);
    }),
    { numRuns: 2_000 },
  );
});
