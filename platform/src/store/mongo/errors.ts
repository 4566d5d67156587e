import { MongoError, MongoServerError } from 'mongodb';
import { ServiceError, unavailable } from '../../core/errors.ts';
import { withTimeout } from '../../core/with-timeout.ts';
import { indexesOf } from '../indexes.ts';
import { DuplicateKeyError, type Collection } from '../store.ts';

export const DUPLICATE_KEY = 11000;
const TYPE_MISMATCH = 14;
/** BadValue, FailedToParse, BSONObjectTooLarge: the same request would never succeed. */
const PERMANENT: readonly unknown[] = [2, 9, 10334];

/** No answer came within the time for one operation. */
export class TimedOutError extends Error {
  override readonly name = 'TimedOutError';
  constructor(timeoutMs: number) {
    super(`MongoDB did not answer within ${timeoutMs} ms`);
  }
}

/**
 * A write was repeated after an earlier attempt got no answer; the repeat may conflict with that attempt's own
 * effect.
 */
export class RepeatedWriteError extends Error {
  override readonly name = 'RepeatedWriteError';
  constructor(cause?: unknown) {
    super('the answer to an earlier attempt of this write was lost', { cause });
  }
}

/** The store's error for a write that the server rejected because of its content; undefined for any other error. */
export function rejectionOf(error: unknown, collection: Collection<never>): Error | undefined {
  if (!(error instanceof MongoServerError)) return undefined;
  if (error.code === TYPE_MISMATCH) return new TypeError(`${collection.name}: only a number can be incremented`);
  if (error.code !== DUPLICATE_KEY) return undefined;
  // The error of a bulk write has no keyPattern, so the index is found by its name in the message.
  const name = /index: (.*?) dup key/.exec(error.message)?.[1];
  return new DuplicateKeyError(
    collection.name,
    indexesOf(collection).find((index) => index.name === name)?.fields ?? ['_id'],
  );
}

const SOCKET_ERRORS: readonly unknown[] = [
  'EPIPE',
  'ECONNRESET',
  'ERR_STREAM_DESTROYED',
  'ERR_STREAM_WRITE_AFTER_END',
  'ERR_SOCKET_CLOSED',
];
/**
 * The driver passes on the error of a write to a socket that has just been closed as Node gives it: an error of the
 * operating system (`errno`, `syscall`) or one of Node's own, which has a `code` only.
 */
const isSocketError = (error: unknown): boolean =>
  typeof error === 'object' &&
  error !== null &&
  (('errno' in error && 'syscall' in error) || ('code' in error && SOCKET_ERRORS.includes(error.code)));

/**
 * Translates an error of the driver, here and nowhere else: OUTCOME_UNKNOWN when the request may have been executed,
 * UNAVAILABLE when it was not. Other errors are returned as they are.
 */
export function serviceErrorOf(error: unknown, outcome: 'nothing written' | 'unknown'): unknown {
  if (error instanceof RepeatedWriteError) return new ServiceError('OUTCOME_UNKNOWN', undefined, { cause: error });
  if (!(error instanceof MongoError) && !(error instanceof TimedOutError) && !isSocketError(error)) return error;
  if (error instanceof MongoServerError && PERMANENT.includes(error.code)) return error;
  if (outcome === 'unknown') return new ServiceError('OUTCOME_UNKNOWN', undefined, { cause: error });
  return unavailable('The document store is not available', error);
}

/** @throws TimedOutError; the work itself is not cancelled */
export const withMongoTimeout = <T>(work: Promise<T>, timeoutMs: number): Promise<T> =>
  withTimeout(work, timeoutMs, () => new TimedOutError(timeoutMs));
