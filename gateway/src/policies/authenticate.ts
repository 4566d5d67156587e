import type { ServiceClient } from 'platform/rpc/call.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { servicePrincipal, type Principal } from 'platform/core/principal.ts';
import { fromStatus } from 'platform/rpc/wire-errors.ts';
import type { AuthServiceService, Decision } from 'proto/auth/v1/auth.ts';
import type { GatewayRequest, Policy } from '../http/exchange.ts';
import type { ServiceRoute } from '../contract/routes.ts';

export type AuthClient = Pick<ServiceClient<typeof AuthServiceService>, 'authenticate'>;

interface Attempt {
  bearer: string;
  method: string;
  requestId: string;
}
interface Waiting {
  attempt: Attempt;
  resolve(principal: Principal): void;
  reject(error: unknown): void;
}

const BEARER = /^bearer +([\w.~+/=-]{1,4096})$/i;
const MAX_BATCH = 100;
const SELF = servicePrincipal('gateway');

/** Second policy: every route but a public one needs a token that auth accepts for this very method, now. */
export function makeAuthenticate(auth: AuthClient): Policy {
  const ask = batched(auth);
  return async (req, _res, next) => {
    const { policy, method } = req.exchange.route as ServiceRoute;
    if (!policy.public) {
      req.exchange.principal = await ask({
        bearer: bearerOf(req),
        method: method.path,
        requestId: req.exchange.requestId,
      });
    }
    next();
  };
}

function bearerOf(req: GatewayRequest): string {
  const { authorization = '' } = req.headers;
  // node keeps the first of several
  if (
    req.rawHeaders.filter(
      (name, index) => index % 2 === 0 && name.length === 13 && name.toLowerCase() === 'authorization',
    ).length > 1
  ) {
    throw new ServiceError('INVALID_REQUEST', 'The Authorization header is given more than once');
  }
  const bearer = BEARER.exec(authorization)?.[1];
  if (bearer === undefined) throw new ServiceError('UNAUTHENTICATED');
  return bearer;
}

/** Collects the tokens of one event-loop turn and asks once. Every answer is newer than its question: nothing is kept. */
function batched(auth: AuthClient): (attempt: Attempt) => Promise<Principal> {
  let waiting: Waiting[] = [];
  const flush = (): void => {
    const turn = waiting;
    waiting = [];
    for (let start = 0; start < turn.length; start += MAX_BATCH)
      void decide(auth, turn.slice(start, start + MAX_BATCH));
  };
  return (attempt) =>
    new Promise((resolve, reject) => {
      if (waiting.length === 0) setImmediate(flush);
      waiting.push({ attempt, resolve, reject });
    });
}

async function decide(auth: AuthClient, batch: readonly Waiting[]): Promise<void> {
  const [
    {
      attempt: { requestId },
    },
  ] = batch as [Waiting];
  try {
    const { decisions } = await auth.authenticate(
      { attempts: batch.map(({ attempt }) => attempt) },
      { principal: SELF, requestId },
    );
    batch.forEach(({ resolve, reject }, index) => settle(decisions[index], resolve, reject));
  } catch (error) {
    const failure = unavailable(error);
    for (const { reject } of batch) reject(failure);
  }
}

function settle(decision: Decision | undefined, resolve: Waiting['resolve'], reject: Waiting['reject']): void {
  if (decision?.principal) resolve(decision.principal);
  else reject((decision?.denial && fromStatus(decision.denial)) ?? new Error('auth left an attempt undecided'));
}

/** Where auth cannot be heard nothing was done yet: 503. Any other failure of the call is this platform's fault, not the token's. */
function unavailable(error: unknown): ServiceError {
  const isOutage = error instanceof ServiceError && ['UNAVAILABLE', 'OUTCOME_UNKNOWN'].includes(error.reason);
  return new ServiceError(isOutage ? 'UNAVAILABLE' : 'INTERNAL', undefined, { cause: isOutage ? error.cause : error });
}
