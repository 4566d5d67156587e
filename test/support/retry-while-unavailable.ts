import { ServiceError, type KnownReason } from 'platform/core/errors.ts';
import { eventually } from 'platform/service/test-end.ts';

/** MongoDB may keep the locks of a killed process's transaction for 60 s. */
const GIVE_UP_MS = 180_000;

/** Calls again after errors that pass: an engine may still be busy with work that killed processes began. */
export async function retryWhileUnavailable<T>(
  call: () => Promise<T>,
  transient: readonly KnownReason[] = ['UNAVAILABLE'],
): Promise<T> {
  const giveUpAt = Date.now() + GIVE_UP_MS;
  const answered = await eventually(async () => {
    try {
      return { answer: await call() };
    } catch (error) {
      if (!(error instanceof ServiceError && transient.includes(error.reason)) || Date.now() > giveUpAt) throw error;
      return undefined;
    }
  });
  return answered.answer;
}
