import { codeOf, ServiceError } from '../../core/errors.ts';
import type { Call, Interceptor } from '../handle.ts';

/** Told of a call that begins. What it returns is told how the call ends: "ok", or the code of its reason. */
export type OnCall = (call: Call) => (code: string) => void;

export const tellCalls =
  (onCall: OnCall): Interceptor =>
  async (call, next) => {
    const ended = onCall(call);
    try {
      const reply = await next();
      ended('ok');
      return reply;
    } catch (error) {
      ended(codeOf(error instanceof ServiceError ? error.reason : 'INTERNAL'));
      throw error;
    }
  };
