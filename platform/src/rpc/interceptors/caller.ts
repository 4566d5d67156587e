import type { Interceptor } from '../handle.ts';
import type { Identity } from '../identity.ts';

/** Verifies which process calls, and for which principal. @throws ServiceError UNAUTHENTICATED */
export const identifyCaller =
  (identity: Identity): Interceptor =>
  async (call, next) => {
    const { caller, principal } = await identity.verify(call.assertion);
    call.caller = caller;
    call.principal = principal;
    return next();
  };
