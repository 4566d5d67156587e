import { ServiceError } from '../../core/errors.ts';
import type { Interceptor } from '../handle.ts';

/**
 * Drops a call that waited in the queue of this process for longer than its caller did.
 * @throws ServiceError CLIENT_GONE
 */
export const requireTimeLeft: Interceptor = async ({ signal, deadline }, next) => {
  // gRPC counts deadlines by the machine's clock
  if (signal.aborted || Date.now() > deadline) throw new ServiceError('CLIENT_GONE');
  return next();
};
