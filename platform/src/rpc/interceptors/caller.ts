import { ServiceError } from '../../core/errors.ts';
import type { Principal } from '../../core/principal.ts';
import type { Interceptor } from '../handle.ts';
import { callerRole, isOperator } from '../peer-name.ts';

/**
 * Checks that the certificate of the calling process is still accepted, and that this process may call for the
 * principal.
 * @throws ServiceError UNAUTHENTICATED
 */
export const identifyCaller: Interceptor = async ({ peer, principal }, next) => {
  await peer.check();
  if (!mayAssert(peer.name, principal))
    throw new ServiceError('UNAUTHENTICATED', `${peer.name} may not call for this principal`);
  return next();
};

/**
 * A service may act for users and server tokens, and as a service only as itself; gateway and agents also for agent
 * executions. An operator may act as itself, or for a user whose `via` names this operator. Only an operator may act as
 * an operator.
 * Subject, name and `via` go into the audit trail; auth checks those of a user (authority.ts).
 */
function mayAssert(caller: string, { kind, subject, name, via }: Principal): boolean {
  const operatorName = isOperator(caller) ? caller.slice(callerRole(caller).length + 1) : undefined;
  switch (kind) {
    case 'OPERATOR':
      return operatorName !== undefined && subject === operatorName && name === operatorName && via === '';
    case 'USER':
      return operatorName === undefined || via === operatorName;
    case 'SERVER_TOKEN':
      return operatorName === undefined && via === '';
    case 'AGENT_EXECUTION':
      return ['gateway', 'agents'].includes(caller) && via === '';
    case 'SERVICE':
      return subject === caller && name === caller && via === '';
    default:
      return false;
  }
}
