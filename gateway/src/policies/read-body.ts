import { isUtf8 } from 'node:buffer';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { FREE_CHUNKS, makeBodyBuffer, MIN_MEAN_BYTES } from 'platform/core/body-buffer.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { hasByteOrderMark } from 'platform/json/json-file.ts';
import type { JsonReader } from '../json/json-reader.ts';
import { NOBODY, type GatewayRequest, type Policy } from '../http/exchange.ts';
import type { ServiceRoute } from '../contract/routes.ts';

/** Also as many libraries misspell it. */
const UTF_8 = /=\s*"?utf-?8"?$/;
const TOO_MANY_SMALL_CHUNKS = `The body comes in too many small chunks: more than ${FREE_CHUNKS} need ${MIN_MEAN_BYTES} bytes each on average`;

export interface BodyLimits {
  maxBytes: number;
  timeoutMs: number;
}

/**
 * Next to last policy. Checks media type (415), size (413), chunks (400), time (408) and JSON (400), if the route takes
 * a body.
 */
export function makeReadBody(json: JsonReader, limits: BodyLimits): Policy {
  return async (req, res, next) => {
    const { route, principal = NOBODY } = req.exchange;
    const { takesBody, options, schemaMembers } = route as ServiceRoute;
    if (takesBody) {
      requireJson(req);
      const bytes = await readBytes(req, res, { ...limits, maxBytes: options.maxBodyBytes || limits.maxBytes });
      if (hasByteOrderMark(bytes)) throw new ServiceError('MALFORMED_JSON', 'The body begins with a byte order mark');
      if (!isUtf8(bytes)) throw new ServiceError('MALFORMED_JSON', 'The body is not valid UTF-8');
      req.exchange.body = await json.read(principal.organizationId, bytes, schemaMembers);
    }
    next();
  };
}

function requireJson({ headers }: IncomingMessage): void {
  const isEmpty = headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0;
  if (isEmpty) throw new ServiceError('MALFORMED_JSON', 'The body is missing');
  const [type = '', ...parameters] = (headers['content-type'] ?? '')
    .split(';')
    .map((part) => part.trim().toLowerCase());
  if (type !== 'application/json') throw new ServiceError('UNSUPPORTED_MEDIA_TYPE');
  // JSON has no parameters (RFC 8259, 11), but this one says that the bytes mean something else
  if (parameters.some((parameter) => /^charset\s*=/.test(parameter) && !UTF_8.test(parameter)))
    throw new ServiceError('UNSUPPORTED_MEDIA_TYPE', 'The body must be in UTF-8');
  if ((headers['content-encoding'] ?? 'identity') !== 'identity')
    throw new ServiceError('UNSUPPORTED_MEDIA_TYPE', 'The body must not be encoded');
}

function readBytes(
  req: GatewayRequest,
  res: ServerResponse,
  { maxBytes, timeoutMs }: BodyLimits,
): Promise<Buffer<ArrayBuffer>> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer<ArrayBuffer>>();
  const { exchange, headers } = req;
  const declaredBytes = Number(headers['content-length'] ?? 0);
  const body = makeBodyBuffer(declaredBytes, maxBytes);
  const timer = setTimeout(() => reject(new ServiceError('REQUEST_TIMEOUT')), timeoutMs);
  const rejectTooLarge = (): void =>
    reject(new ServiceError('BODY_TOO_LARGE', `The body is larger than ${maxBytes} bytes`));
  req.on('data', (chunk: Buffer) => {
    const fault = body.add(chunk);
    if (fault === 'too large') rejectTooLarge();
    else if (fault === 'too many small chunks') {
      exchange.dropRest?.();
      reject(new ServiceError('INVALID_REQUEST', TOO_MANY_SMALL_CHUNKS));
    }
  });
  req.once('end', () => resolve(body.bytes()));
  const rejectGone = (): void => reject(new ServiceError('CLIENT_GONE'));
  req.once('error', rejectGone);
  // the request was answered before its body ended: its bytes were not valid HTTP, or the gateway stops
  res.once('close', rejectGone);
  if (declaredBytes > maxBytes) rejectTooLarge();
  else {
    if (headers.expect !== undefined) res.writeContinue();
    exchange.startBody?.();
  }
  return promise.finally(() => {
    clearTimeout(timer);
    res.off('close', rejectGone);
  });
}
