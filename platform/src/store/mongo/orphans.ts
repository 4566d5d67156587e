import { setTimeout as delay } from 'node:timers/promises';
import { type ClientSession, type Db } from 'mongodb';

/** transactionLifetimeLimitSeconds by default: then the server ends it itself. */
const LIFETIME_MS = 60_000;
const PAUSE_MS = 500;

/**
 * Ends a transaction whose end the server may not have heard, or whose statements it may yet get to read: until then it would hold
 * its documents against everybody. A newer transaction of the same session aborts it and makes it too late for its statements
 * (https://www.mongodb.com/docs/manual/reference/method/Session.startTransaction). Never rejects; keeps no process alive.
 */
export async function endOrphan(session: ClientSession, db: Db): Promise<void> {
  const giveUpAt = performance.now() + LIFETIME_MS;
  while (!(await supersede(session, db)) && performance.now() < giveUpAt)
    await delay(PAUSE_MS, undefined, { ref: false });
  await session.endSession();
}

/** True when the server has heard of it, or nobody can tell it any more: the client is closed. */
async function supersede(session: ClientSession, db: Db): Promise<boolean> {
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
