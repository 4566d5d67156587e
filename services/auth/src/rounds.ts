import { ServiceError } from 'platform/errors.ts';
import { DuplicateKey, ExpectationFailed } from 'platform/store/store.ts';

const ROUNDS = 5;

/**
 * A round reads, decides and writes one batch that expects what it read. Another writer was faster: it starts again and sees why.
 * @throws ServiceError CONFLICT after five rounds
 */
export async function inRounds<T>(round: () => Promise<T>): Promise<T> {
  for (let left = ROUNDS; ; left--) {
    try {
      return await round();
    } catch (error) {
      if (!(error instanceof DuplicateKey || error instanceof ExpectationFailed)) throw error;
      if (left === 1) throw new ServiceError('CONFLICT', undefined, { cause: error });
    }
  }
}
