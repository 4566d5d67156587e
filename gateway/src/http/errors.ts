import { codeOf, ERRORS, ServiceError } from 'platform/core/errors.ts';
import type { Log } from 'platform/core/log.ts';
import type { Reply } from './reply.ts';

const RETRY_AFTER_SECONDS = '1';

/** Any failure -> its reply. What is not a ServiceError of a known reason is a 500 that tells nothing; its cause is logged. */
export function errorReply(error: unknown, requestId: string, log: Log): Reply {
  const known =
    error instanceof ServiceError && error.reason in ERRORS
      ? error
      : new ServiceError('INTERNAL', undefined, { cause: error });
  const { http: status } = ERRORS[known.reason];
  const code = codeOf(known.reason);
  if (status === 500) log.error({ requestId, code, error: known.cause }, 'request failed');
  else if (status > 500) log.warn({ requestId, code, cause: String(known.cause) }, 'request failed');
  // whatever lay behind a 401, its body is the same
  const { message, details, facts } = known.reason === 'UNAUTHENTICATED' ? new ServiceError('UNAUTHENTICATED') : known;
  return {
    status,
    headers: {
      ...headersFor(status),
      ...Object.fromEntries(Object.entries(known.headers).map(([name, value]) => [name.toLowerCase(), value])),
    },
    body: JSON.stringify({ error: message, code, ...(details.length > 0 && { details }), ...facts, requestId }),
  };
}

/** 405 with the verbs that there are. */
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
