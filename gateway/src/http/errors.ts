import { codeOf, ERRORS, isFault, ServiceError } from 'platform/core/errors.ts';
import type { Log } from 'platform/core/log.ts';
import { principalIds } from 'platform/core/principal.ts';
import type { Exchange } from './exchange.ts';
import type { Reply } from './reply.ts';

const RETRY_AFTER_SECONDS = '1';

/** By which the lines of a request are found. */
interface RequestIds {
  requestId: string;
  organizationId?: string;
  tokenId?: string;
}
export const idsOf = ({ requestId, principal }: Exchange): RequestIds => ({
  requestId,
  ...(principal && principalIds(principal)),
});

/**
 * Turns any error into a reply. Anything but a ServiceError with a known reason becomes a 500 without details.
 * Faults of the platform are logged with their cause under the request id, the other errors for debugging.
 */
export function errorReply(error: unknown, ids: RequestIds, log: Log): Reply<string> {
  const known =
    error instanceof ServiceError && error.reason in ERRORS
      ? error
      : new ServiceError('INTERNAL', undefined, { cause: error });
  const { http: status } = ERRORS[known.reason];
  const code = codeOf(known.reason);
  if (!isFault(status, code)) log.debug({ ...ids, code }, 'request refused');
  else if (status === 500) log.error({ ...ids, code, error: known.cause }, 'request failed');
  else log.warn({ ...ids, code, cause: String(known.cause) }, 'request failed');
  return replyOf(known, ids.requestId);
}

/** The reply to an error, which is not logged. */
export function replyOf(error: ServiceError, requestId: string): Reply<string> {
  const { http: status } = ERRORS[error.reason];
  // every 401 has the same body, so that it does not reveal why the token was rejected
  const { message, details, facts } = error.reason === 'UNAUTHENTICATED' ? new ServiceError('UNAUTHENTICATED') : error;
  return {
    status,
    code: codeOf(error.reason),
    headers: {
      ...headersFor(status),
      ...Object.fromEntries(Object.entries(error.headers).map(([name, value]) => [name.toLowerCase(), value])),
    },
    body: JSON.stringify({
      error: message,
      code: codeOf(error.reason),
      ...(details.length > 0 && { details }),
      ...facts,
      requestId,
    }),
  };
}

/** 405 with the allowed verbs in the body and the Allow header. */
export const methodNotAllowed = (allow: readonly string[]): ServiceError =>
  new ServiceError('METHOD_NOT_ALLOWED', undefined, { facts: { allow }, headers: { allow: allow.join(', ') } });

function headersFor(status: number): Record<string, string> {
  switch (status) {
    case 401:
      return { 'www-authenticate': 'Bearer' };
    case 408:
      return { connection: 'close' };
    case 429:
    case 503:
      return { 'retry-after': RETRY_AFTER_SECONDS };
    default:
      return {};
  }
}
