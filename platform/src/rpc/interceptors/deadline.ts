import { ServiceError } from '../../core/errors.ts';
import type { Interceptor } from '../handle.ts';

/**
 * Rejects a call whose caller stopped waiting for it before this process could handle it.
 * @throws ServiceError CLIENT_GONE
 */
export const requireTimeLeft: Interceptor = async ({ signal, deadline }, next) => {
  // gRPC deadlines use the machine's clock, not the store's time.
  if (signal.aborted || Date.now() > deadline) throw new ServiceError('CLIENT_GONE');
  return next();
};
