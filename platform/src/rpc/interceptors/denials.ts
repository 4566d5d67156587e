import { codeOf, ERRORS, ServiceError } from '../../core/errors.ts';
import { actorOf, type Actor } from '../../core/principal.ts';
import type { Interceptor } from '../handle.ts';

/** One request that a handler denied to a principal of an organization. */
export interface DeniedRequest {
  organizationId: string;
  actor: Actor;
  /** snake_case code of the reason. */
  code: string;
  /** The method that was called. */
  target: { type: 'method'; id: string };
  requestId: string;
}

/** Calls `note` for every error of a handler that the error table flags as a denial, for the audit trail. */
export const noteDenials =
  (note: (denied: DeniedRequest) => void): Interceptor =>
  async ({ principal, requestId, path }, next) => {
    try {
      return await next();
    } catch (error) {
      const { organizationId } = principal;
      if (error instanceof ServiceError && ERRORS[error.reason].denial && organizationId !== '')
        note({
          organizationId,
          actor: actorOf(principal),
          code: codeOf(error.reason),
          target: { type: 'method', id: path },
          requestId,
        });
      throw error;
    }
  };
