import type { ServiceClient } from 'platform/rpc/call.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { servicePrincipal, type Principal } from 'platform/core/principal.ts';
import { inScopeOfOne, inSpan, traceScope } from 'platform/telemetry/traces.ts';
import type { TraceScope } from 'platform/telemetry/traceparent.ts';
import { fromStatus } from 'platform/rpc/wire-errors.ts';
import type { AuthServiceService, Decision } from 'proto/auth/v1/auth.ts';
import type { GatewayRequest, Policy } from '../http/exchange.ts';
import type { HttpMetrics } from '../http/metrics.ts';
import { clientAddress } from '../http/forwarded.ts';
import { isRepeated } from '../http/request-headers.ts';
import type { ServiceRoute } from '../contract/routes.ts';
import type { Strangers } from '../limits/strangers.ts';

export type AuthClient = Pick<ServiceClient<typeof AuthServiceService>, 'authenticate'>;

interface Attempt {
  bearer: string;
  method: string;
  requestId: string;
  address: string;
}
interface PendingAttempt {
  attempt: Attempt;
  scope: TraceScope | undefined;
  resolve(principal: Principal): void;
  reject(error: unknown): void;
}

const BEARER = /^bearer +([\w.~+/=-]{1,4096})$/i;
const MAX_BATCH = 100;
const NO_ATTRIBUTES = () => ({});
const SELF = servicePrincipal('gateway');

/**
 * Second policy: every route that is not public needs a token that auth accepts for the route's method. Too many
 * requests without one are refused before auth is asked (429).
 */
export function makeAuthenticate(
  auth: AuthClient,
  strangers: Strangers,
  trustedProxies: number,
  metrics?: Pick<HttpMetrics, 'authenticated'>,
): Policy {
  const authenticate = batched(auth);
  return async (req, _res, next) => {
    const { exchange } = req;
    const { options, method } = exchange.route as ServiceRoute;
    if (!options.public) {
      const address = clientAddress(req, trustedProxies);
      const bearer = bearerOf(req);
      strangers.requireRoom(address, bearer, method.path);
      const deny = (error: unknown): never => {
        Object.assign(exchange.headers, strangers.wasDenied(address, bearer, method.path, error));
        throw error;
      };
      if (bearer === undefined) return deny(new ServiceError('UNAUTHENTICATED'));
      const askedAt = performance.now();
      const attempt = { bearer, method: method.path, requestId: exchange.requestId, address };
      exchange.principal = await inSpan('internal', 'authenticate', NO_ATTRIBUTES, () => authenticate(attempt)).catch(
        deny,
      );
      metrics?.authenticated(performance.now() - askedAt);
      strangers.wasValid(bearer);
      exchange.keepPlace?.();
    }
    next();
  };
}

/** @returns undefined when there is none that could be valid */
function bearerOf(req: GatewayRequest): string | undefined {
  const { authorization = '' } = req.headers;
  if (isRepeated(req, 'authorization'))
    throw new ServiceError('INVALID_REQUEST', 'The Authorization header is given more than once');
  return BEARER.exec(authorization)?.[1];
}

/** Authenticates the tokens of one event-loop turn in one call. Caches nothing, so a revoked token fails at once. */
function batched(auth: AuthClient): (attempt: Attempt) => Promise<Principal> {
  let pending: PendingAttempt[] = [];
  const flush = (): void => {
    const turn = pending;
    pending = [];
    for (let start = 0; start < turn.length; start += MAX_BATCH)
      void decide(auth, turn.slice(start, start + MAX_BATCH));
  };
  return (attempt) =>
    new Promise((resolve, reject) => {
      if (pending.length === 0) setImmediate(flush);
      pending.push({ attempt, scope: traceScope(), resolve, reject });
    });
}

/**
 * Settles every attempt of the batch; never rejects. Attempts of which auth wants to be asked alone are sent again, one
 * call for each token, so that no other token's requests wait for them or fail with them.
 */
async function decide(auth: AuthClient, batch: readonly PendingAttempt[], alone = false): Promise<void> {
  const [
    {
      attempt: { requestId },
    },
  ] = batch as [PendingAttempt];
  try {
    const { decisions } = await inScopeOfOne(
      batch.map(({ scope }) => scope),
      () => auth.authenticate({ attempts: batch.map(({ attempt }) => attempt) }, { principal: SELF, requestId }),
    );
    const again = batch.filter((_, index) => decisions[index]?.askAlone && !alone);
    for (const ofOneToken of Map.groupBy(again, ({ attempt }) => attempt.bearer).values())
      void decide(auth, ofOneToken, true);
    batch.forEach((pending, index) => {
      if (!again.includes(pending)) settle(decisions[index], pending.resolve, pending.reject);
    });
  } catch (error) {
    const failure = failureOf(error);
    for (const { reject } of batch) reject(failure);
  }
}

function settle(
  decision: Decision | undefined,
  resolve: PendingAttempt['resolve'],
  reject: PendingAttempt['reject'],
): void {
  if (decision?.principal) resolve(decision.principal);
  else reject((decision?.denial && fromStatus(decision.denial)) ?? new Error('auth did not decide an attempt'));
}

/** 503 if auth does not answer: authenticating changes nothing, so the client may ask again. Else 500. */
function failureOf(error: unknown): ServiceError {
  const isOutage = error instanceof ServiceError && ['UNAVAILABLE', 'OUTCOME_UNKNOWN'].includes(error.reason);
  return new ServiceError(isOutage ? 'UNAVAILABLE' : 'INTERNAL', undefined, { cause: isOutage ? error.cause : error });
}
