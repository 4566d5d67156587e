import { MongoServerError, type ClientSession, type MongoClient } from 'mongodb';

/** How many commands of a session were started, and how they ended. */
export interface Attempts {
  sent: number;
  /** Certainly wrote nothing: the server rejected them, or they never left this machine. */
  withoutEffect: number;
  /** Left this machine and got no answer. */
  unanswered: number;
}

/** NotWritablePrimary, NotPrimaryNoSecondaryOk, NotPrimaryOrSecondary, Unauthorized, AuthenticationFailed. */
const REJECTIONS: readonly unknown[] = [10107, 13435, 13436, 13, 18];

const isRejection = (failure: Error): boolean =>
  failure instanceof MongoServerError &&
  (REJECTIONS.includes(failure.code) ||
    failure.hasErrorLabel('NoWritesPerformed') ||
    failure.hasErrorLabel('SystemOverloadedError'));

/**
 * Node's own EPIPE for a socket that the other side had already ended: nothing was sent. The EPIPE of the operating
 * system has a `syscall`, and part of the command may have been sent.
 */
const wasNeverSent = (failure: Error): boolean =>
  'code' in failure && failure.code === 'EPIPE' && !('syscall' in failure);

/**
 * Counts the attempts of each write. The driver repeats a write by itself and shows the last error only, which can be
 * "no server found" although the first attempt succeeded.
 */
export function attemptWatcher(client: MongoClient): (session: ClientSession) => Attempts {
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
    if (isRejection(failure) || wasNeverSent(failure)) attempts.withoutEffect++;
    else if (!(failure instanceof MongoServerError)) attempts.unanswered++;
  });
  return (session) => {
    const attempts = { sent: 0, withoutEffect: 0, unanswered: 0 };
    bySession.set(session.id!, attempts);
    return attempts;
  };
}
