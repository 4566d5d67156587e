import { setTimeout as delay } from 'node:timers/promises';
import type { ClientSession, Db, MongoClient } from 'mongodb';
import type { Attempts } from './attempts.ts';
import { commandsOf, UnnamedExpectationError, type Command } from './commands.ts';
import { RepeatedWriteError, serviceErrorOf, TimedOutError, withMongoTimeout } from './errors.ts';
import { DuplicateKeyError, ExpectationFailedError, type Op } from '../store.ts';

export interface ApplyOptions {
  client: MongoClient;
  db: Db;
  /** For a whole batch, repeats included. */
  timeoutMs: number;
  watchAttempts: (session: ClientSession) => Attempts;
  /** Called each time that a transaction was aborted and is tried again. */
  onAbort: () => void;
}

/** Applies a batch: a single operation as it is, several as one transaction. @throws see serviceErrorOf */
export async function applyOps(options: ApplyOptions, ops: readonly Op[]): Promise<void> {
  const { few, single } = commandsOf(options.db, ops);
  if (ops.length === 1) return applySingle(options, single[0]!);
  const startedAt = performance.now();
  try {
    await applyTransaction(options, few);
  } catch (error) {
    if (!(error instanceof UnnamedExpectationError)) throw error;
    // Nothing of it was written. One by one, the operation whose expectation fails is known; if none fails any more,
    // the batch is applied.
    const timeoutMs = Math.max(1, options.timeoutMs - (performance.now() - startedAt));
    await applyTransaction({ ...options, timeoutMs }, single);
  }
}

async function applySingle({ client, timeoutMs, watchAttempts }: ApplyOptions, command: Command): Promise<void> {
  const session = client.startSession();
  const attempts = watchAttempts(session);
  const running = command(session).finally(() => session.endSession());
  try {
    await withMongoTimeout(running, timeoutMs);
  } catch (error) {
    const nothingWritten = attempts.sent === attempts.withoutEffect;
    // We report that nothing was written, so the driver must not send the command later: an ended session sends
    // nothing.
    if (error instanceof TimedOutError && nothingWritten) void session.endSession();
    // A server that restarted may have forgotten that an earlier attempt of this very write is what it conflicts with.
    const mayConflictWithItself =
      attempts.unanswered > 0 && (error instanceof DuplicateKeyError || error instanceof ExpectationFailedError);
    throw serviceErrorOf(
      mayConflictWithItself ? new RepeatedWriteError(error) : error,
      nothingWritten ? 'nothing written' : 'unknown',
    );
  }
}

/**
 * The driver repeats aborted transactions and unanswered commits for up to two minutes; `timeoutMs` ends that
 * earlier.
 */
async function applyTransaction(
  { client, db, timeoutMs, watchAttempts, onAbort }: ApplyOptions,
  commands: readonly Command[],
): Promise<void> {
  const session = client.startSession();
  const attempts = watchAttempts(session);
  let tries = 0;
  let unansweredBeforeCommit = 0;
  let committing = false;
  let timedOut: TimedOutError | undefined;
  const throwIfTimedOut = (): void => {
    if (timedOut) throw timedOut;
  };
  const running = session.withTransaction(async () => {
    // The driver starts over when the server does not know the transaction. After an unanswered commit that proves
    // nothing: a server that restarted may have forgotten what it committed.
    if (committing && attempts.unanswered > unansweredBeforeCommit) throw new RepeatedWriteError();
    if (++tries > 1) onAbort();
    committing = false;
    for (const command of commands) {
      throwIfTimedOut();
      await command(session);
    }
    throwIfTimedOut();
    unansweredBeforeCommit = attempts.unanswered;
    committing = true;
  });
  void running.then(
    () => session.endSession(),
    () => (attempts.unanswered > 0 ? endAbandonedTransaction(session, db) : session.endSession()),
  );
  try {
    await withMongoTimeout(running, timeoutMs);
  } catch (error) {
    if (error instanceof TimedOutError) timedOut = error;
    throw serviceErrorOf(error, committing ? 'unknown' : 'nothing written');
  }
}

/** The default of transactionLifetimeLimitSeconds: then the server itself ends the transaction. */
const TRANSACTION_LIFETIME_MS = 60_000;
const RETRY_MS = 500;

/**
 * Ends a transaction whose abort the server may not have received, or whose commands it may still receive: otherwise
 * it would block all other writers of its documents. A newer transaction of the same session aborts it, and the
 * server then rejects its late commands
 * (https://www.mongodb.com/docs/manual/reference/method/Session.startTransaction). Never rejects; does not keep the
 * process alive.
 */
async function endAbandonedTransaction(session: ClientSession, db: Db): Promise<void> {
  const giveUpAt = performance.now() + TRANSACTION_LIFETIME_MS;
  while (!(await startNewerTransaction(session, db)) && performance.now() < giveUpAt)
    await delay(RETRY_MS, undefined, { ref: false });
  await session.endSession();
}

/** True when the server received it, or when the client is closed and nothing more can be sent. */
async function startNewerTransaction(session: ClientSession, db: Db): Promise<boolean> {
  try {
    session.startTransaction();
    await db.collection('~none').findOne({}, { session });
    return true;
  } catch {
    return session.hasEnded;
  } finally {
    await session.abortTransaction().catch(() => undefined);
  }
}
