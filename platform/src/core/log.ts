import pino, { type Logger } from 'pino';

export type Log = Logger;

/**
 * Logs JSON lines to standard error. Log named facts only: never a body, args, content, a header or a bearer token.
 * @param level pino level; "silent" in tests
 * @param added facts that every line gets
 */
export function makeLog(service: string, level: string, added?: () => object): Log {
  return pino(
    {
      level,
      base: { service },
      timestamp: pino.stdTimeFunctions.isoTime,
      errorKey: 'error',
      ...(added && { mixin: added }),
    },
    pino.destination({ fd: 2, sync: true }),
  );
}
