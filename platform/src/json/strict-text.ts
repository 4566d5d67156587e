import { isUtf8 } from 'node:buffer';
import { invalid, ServiceError } from '../core/errors.ts';
import { LONE_SURROGATE } from './escape.ts';
import { strictJson } from './strict-json.ts';

const NO_UTF8 = 'The bytes are not UTF-8';

/**
 * strictJson for what has not come through the gateway: bytes of any kind, or a text that JavaScript may have made.
 * @throws ServiceError as strictJson does, also for bytes that are no UTF-8, and for lone surrogates without an escape
 */
export function strictJsonOf(given: string | Buffer, schemas: readonly string[] = []): Buffer<ArrayBuffer> {
  if (typeof given === 'string')
    return strictJson(Buffer.from(given.isWellFormed() ? given : withEscapedHalves(given)), schemas);
  if (isUtf8(given)) return strictJson(given, schemas);
  throw faultOfBytes(given);
}

/** An encoder would silently replace them. */
const withEscapedHalves = (text: string): string =>
  text.replace(/\p{Surrogate}/gu, (half) => `\\u${half.charCodeAt(0).toString(16)}`);

/** Names the place of the first byte that is no UTF-8, or an earlier fault: a lone surrogate stands for the byte. */
function faultOfBytes(bytes: Buffer): ServiceError {
  const decoded = Buffer.from(bytes.toString());
  let at = 0;
  while (bytes[at] === decoded[at]) at++;
  try {
    strictJson(Buffer.concat([decoded.subarray(0, at), Buffer.from('\\ud800"')]));
  } catch (error) {
    const [violation] = (error as ServiceError).details;
    if (violation) return invalid(violation.path, violation.message === LONE_SURROGATE ? NO_UTF8 : violation.message);
  }
  return new ServiceError('MALFORMED_JSON', NO_UTF8);
}
