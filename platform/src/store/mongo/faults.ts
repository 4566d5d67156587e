import { MongoError, MongoServerError } from 'mongodb';
import { ServiceError, unavailable } from '../../core/errors.ts';
import { withTimeout } from '../../core/with-timeout.ts';
import { indexesOf } from '../indexes.ts';
import { DuplicateKeyError, type Collection } from '../store.ts';

export const DUPLICATE_KEY = 11000;
const TYPE_MISMATCH = 14;
/** BadValue, FailedToParse, BSONObjectTooLarge: the same request would never succeed. */
const HOPELESS: readonly unknown[] = [2, 9, 10334];

/** No answer came within the time for one operation. */
export class TimedOutError extends Error {
  override readonly name = 'TimedOutError';
  constructor(timeoutMs: number) {
    super(`MongoDB did not answer within ${timeoutMs} ms`);
  }
}

/** A write was sent again after its answer was lost, and would meet, or has met, what it may have done itself. */
export class OwnWriteError extends Error {
  override readonly name = 'OwnWriteError';
  constructor(cause?: unknown) {
    super('the answer to an earlier attempt of this write was lost', { cause });
  }
}

/** What the server says of a write that it looked at and did not do; undefined when it says nothing of the kind. */
export function refusalOf(error: unknown, collection: Collection<never>): Error | undefined {
  if (!(error instanceof MongoServerError)) return undefined;
  if (error.code === TYPE_MISMATCH) return new TypeError(`${collection.name}: only a number can be incremented`);
  if (error.code !== DUPLICATE_KEY) return undefined;
  // Bulk writes do not hand on keyPattern, so the name of the index tells.
  const name = /index: (.*?) dup key/.exec(error.message)?.[1];
  return new DuplicateKeyError(
    collection.name,
    indexesOf(collection).find((index) => index.name === name)?.fields ?? ['_id'],
  );
}

const SOCKET_FAULTS: readonly unknown[] = [
  'EPIPE',
  'ECONNRESET',
  'ERR_STREAM_DESTROYED',
  'ERR_STREAM_WRITE_AFTER_END',
  'ERR_SOCKET_CLOSED',
];
/** A write to a socket that has just been closed reaches us as Node tells it: as the system's error, or as its own, which has a code only. */
const isSocketFault = (error: unknown): boolean =>
  typeof error === 'object' &&
  error !== null &&
  (('errno' in error && 'syscall' in error) || ('code' in error && SOCKET_FAULTS.includes(error.code)));

/** The one place where errors of the driver become ours. `done`: whether what was asked may have been done. */
export function faultOf(error: unknown, done: 'no' | 'perhaps'): unknown {
  if (error instanceof OwnWriteError) return new ServiceError('OUTCOME_UNKNOWN', undefined, { cause: error });
  if (!(error instanceof MongoError) && !(error instanceof TimedOutError) && !isSocketFault(error)) return error;
  if (error instanceof MongoServerError && HOPELESS.includes(error.code)) return error;
  if (done === 'perhaps') return new ServiceError('OUTCOME_UNKNOWN', undefined, { cause: error });
  return unavailable('The document store is not available', error);
}

/** @throws TimedOutError; the work itself goes on */
export const withMongoTimeout = <T>(work: Promise<T>, timeoutMs: number): Promise<T> =>
  withTimeout(work, timeoutMs, () => new TimedOutError(timeoutMs));
