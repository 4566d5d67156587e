import { codeOf, ServiceError } from '../../core/errors.ts';
import { principalIds } from '../../core/principal.ts';
import type { Interceptor } from '../handle.ts';

/**
 * Logs the outcome of every call. An error that is not a ServiceError is a bug: the log has its details, and the caller
 * gets INTERNAL without any.
 */
export const logCalls: Interceptor = async ({ path, requestId, principal, log }, next) => {
  const ids = () => ({ requestId, ...principalIds(principal) });
  try {
    const response = await next();
    if (log.isLevelEnabled('debug')) log.debug({ path, ...ids() }, 'answered');
    return response;
  } catch (error) {
    if (!(error instanceof ServiceError)) {
      log.error({ path, ...ids(), error }, 'failed');
      throw new ServiceError('INTERNAL');
    }
    const level = error.reason === 'INTERNAL' ? 'error' : error.cause ? 'warn' : 'debug';
    log[level]({ path, ...ids(), code: codeOf(error.reason), error: error.cause }, 'rejected');
    throw error;
  }
};
