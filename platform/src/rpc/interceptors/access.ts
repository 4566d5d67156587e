import { ServiceError } from '../../core/errors.ts';
import { requireScope } from '../../core/principal.ts';
import type { Interceptor } from '../handle.ts';
import { callerRole } from '../peer-name.ts';

/**
 * Checks the calling process, the kind of principal, its scope and its role. The gateway has checked them, but a
 * service does not trust its caller. Only auth checks the licence tier.
 * @throws ServiceError FORBIDDEN, ADMIN_REQUIRED
 */
export const requireAccess: Interceptor = async ({ options, peer, principal }, next) => {
  if (!options.callers.includes(callerRole(peer.name)))
    throw new ServiceError('FORBIDDEN', 'This process may not call this method');
  if (!options.principals.includes(principal.kind)) throw new ServiceError('FORBIDDEN');
  requireScope(principal, options.scope);
  const lacksRole = options.role !== '' && principal.kind === 'USER' && !principal.roles.includes(options.role);
  if (lacksRole)
    throw options.role === 'admin'
      ? new ServiceError('ADMIN_REQUIRED')
      : new ServiceError('FORBIDDEN', `The role ${options.role} is required`);
  return next();
};
