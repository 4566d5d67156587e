import { ServiceError } from 'platform/core/errors.ts';
import { hasScope, type Principal } from 'platform/core/principal.ts';
import type { CallableMethod } from 'platform/rpc/client.ts';
import type { ServiceRoute } from '../contract/routes.ts';

/** Facts of an error that tell of what is stored. */
const OF_STORED = ['id', 'count', 'examples'];

/** Whether replies to this principal must not tell what is stored: it lacks the `read_scope` of the method. */
export const isWithheld = ({ options }: ServiceRoute, principal: Principal | undefined): boolean =>
  principal !== undefined && !hasScope(principal, options.readScope);

/** The method, with replies that show of what is stored only what the request has sent. */
export function withholding({ method, toResponse }: ServiceRoute, message: Record<string, unknown>): CallableMethod {
  const sent = (message.updateMask as { paths: string[] } | undefined)?.paths ?? [];
  return { ...method, responseDeserialize: (bytes) => toResponse(bytes, sent) };
}

/** The error without what it tells of what is stored. */
export function withoutStored(error: unknown): unknown {
  if (!(error instanceof ServiceError)) return error;
  const { reason, message, details, facts, headers, cause } = error;
  const left = Object.entries(facts).filter(([name]) => !OF_STORED.includes(name));
  return new ServiceError(reason, message, { details, facts: Object.fromEntries(left), headers, cause });
}
