import { MongoServerError, type ClientSession, type MongoClient } from 'mongodb';

/** Commands of a session that were begun, those that certainly wrote nothing, and those that left and that nobody answered. */
export interface Attempts {
  sent: number;
  refused: number;
  unheard: number;
}

/** NotWritablePrimary, NotPrimaryNoSecondaryOk, NotPrimaryOrSecondary, Unauthorized, AuthenticationFailed. */
const REFUSALS: readonly unknown[] = [10107, 13435, 13436, 13, 18];

const refuses = (failure: Error): boolean =>
  failure instanceof MongoServerError &&
  (REFUSALS.includes(failure.code) ||
    failure.hasErrorLabel('NoWritesPerformed') ||
    failure.hasErrorLabel('SystemOverloadedError'));

/** Node's own answer on a socket that the other side has ended: nothing of the command left. The system's EPIPE names its call. */
const neverLeft = (failure: Error): boolean => 'code' in failure && failure.code === 'EPIPE' && !('syscall' in failure);

/**
 * Follows every attempt of a write: the driver repeats one by itself and shows only the last error,
 * which can be "no server found" though the first attempt was written.
 */
export function watchAttempts(client: MongoClient): (session: ClientSession) => Attempts {
  const bySession = new WeakMap<object, Attempts>();
  const byRequest = new Map<number, Attempts>();
  client.on('commandStarted', ({ command, requestId }) => {
    const attempts = bySession.get((command.lsid ?? command) as object);
    if (attempts === undefined) return;
    attempts.sent++;
    byRequest.set(requestId, attempts);
  });
  client.on('commandSucceeded', ({ requestId }) => void byRequest.delete(requestId));
  client.on('commandFailed', ({ requestId, failure }) => {
    const attempts = byRequest.get(requestId);
    byRequest.delete(requestId);
    if (attempts === undefined) return;
    if (refuses(failure) || neverLeft(failure)) attempts.refused++;
    else if (!(failure instanceof MongoServerError)) attempts.unheard++;
  });
  return (session) => {
    const attempts = { sent: 0, refused: 0, unheard: 0 };
    bySession.set(session.id!, attempts);
    return attempts;
  };
}
