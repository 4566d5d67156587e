import { ServiceError } from './errors.ts';
import { DuplicateKey, ExpectationFailed } from './store/store.ts';

const ROUNDS = 16;

/**
 * Runs a round of read, check and write anew when its batch met a change by another.
 * @throws ServiceError CONFLICT when no round in 16 got through
 */
export async function persistently<T>(round: () => Promise<T>): Promise<T> {
  for (let tried = 1; ; tried++) {
    try {
      return await round();
    } catch (cause) {
      if (!(cause instanceof ExpectationFailed || cause instanceof DuplicateKey)) throw cause;
      if (tried === ROUNDS) throw new ServiceError('CONFLICT', undefined, { cause });
    }
  }
}

/** Lets the writers of one document in this process take turns: unordered, all but one would lose every round. */
export function turns(): <T>(id: string, work: () => Promise<T>) => Promise<T> {
  const last = new Map<string, Promise<unknown>>();
  return async (id, work) => {
    const before = last.get(id);
    const mine = before === undefined ? work() : before.then(work, work);
    last.set(id, mine);
    try {
      return await mine;
    } finally {
      if (last.get(id) === mine) last.delete(id);
    }
  };
}
