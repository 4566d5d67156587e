import type { Db, MongoClient } from 'mongodb';
import { withMongoTimeout, faultOf, OwnWriteError, TimedOutError } from './faults.ts';
import type { Attempts } from './attempts.ts';
import { endOrphan } from './orphans.ts';
import { stepsOf, type Step } from './steps.ts';
import { DuplicateKeyError, ExpectationFailedError, type Op } from '../store.ts';

export interface Applying {
  client: MongoClient;
  db: Db;
  timeoutMs: number;
  attemptsOf: (session: ReturnType<MongoClient['startSession']>) => Attempts;
  /** Called each time that a batch was aborted and is tried again. */
  onAbort: () => void;
}

/** A batch: one command alone, several as one transaction. */
export async function applyOps(applying: Applying, ops: readonly Op[]): Promise<void> {
  const steps = stepsOf(applying.db, ops);
  await (ops.length === 1 ? alone(applying, steps[0]!) : together(applying, steps));
}

async function alone({ client, timeoutMs, attemptsOf }: Applying, step: Step): Promise<void> {
  const session = client.startSession();
  const attempts = attemptsOf(session);
  const running = step(session).finally(() => session.endSession());
  try {
    await withMongoTimeout(running, timeoutMs);
  } catch (error) {
    const undone = attempts.sent === attempts.refused;
    // What still waits for a server must not be sent after we said that it was not done: an ended session sends nothing.
    if (error instanceof TimedOutError && undone) void session.endSession();
    // a server that started again in between may have forgotten that it was this write which came before
    const metItself =
      attempts.unheard > 0 && (error instanceof DuplicateKeyError || error instanceof ExpectationFailedError);
    throw faultOf(metItself ? new OwnWriteError(error) : error, undone ? 'no' : 'perhaps');
  }
}

/** The driver repeats aborted transactions and lost commits for two minutes; time is up earlier here. */
async function together(
  { client, db, timeoutMs, attemptsOf, onAbort }: Applying,
  steps: readonly Step[],
): Promise<void> {
  const session = client.startSession();
  const attempts = attemptsOf(session);
  let tries = 0;
  let unheardBefore = 0;
  let committing = false;
  let timedOut: TimedOutError | undefined;
  const goOn = (): void => {
    if (timedOut) throw timedOut;
  };
  const running = session.withTransaction(async () => {
    // the driver begins anew when the server knows nothing of it; one that started again may have forgotten what it committed
    if (committing && attempts.unheard > unheardBefore) throw new OwnWriteError();
    if (++tries > 1) onAbort();
    committing = false;
    for (const step of steps) {
      goOn();
      await step(session);
    }
    goOn();
    unheardBefore = attempts.unheard;
    committing = true;
  });
  void running.then(
    () => session.endSession(),
    () => (attempts.unheard > 0 ? endOrphan(session, db) : session.endSession()),
  );
  try {
    await withMongoTimeout(running, timeoutMs);
  } catch (error) {
    if (error instanceof TimedOutError) timedOut = error;
    throw faultOf(error, committing ? 'perhaps' : 'no');
  }
}
