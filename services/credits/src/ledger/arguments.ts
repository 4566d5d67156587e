import { DAY_MS } from 'platform/core/clock.ts';
import { invalid } from 'platform/core/errors.ts';
import { timeOfId } from 'platform/core/ids.ts';
import type { GrantArguments, ReserveArguments } from './ledger.ts';

// Bounds of arguments. They are checked before the first write, because a Redis script that fails is not rolled back.
const MAX_AMOUNT_MICROS = 1e15;
/** Upper bound of the sum of all grants of one account: the largest integer that every engine holds exactly. */
export const MAX_GRANTED_MICROS = Number.MAX_SAFE_INTEGER;
const MAX_NOTE_LENGTH = 200;
/** Upper bound of the rows on one page of the ledger. */
export const MAX_PAGE_SIZE = 1000;
const MIN_TTL_MS = 1000;
const MAX_TTL_MS = DAY_MS;
/** How far an id's time may be ahead of the engine's clock. */
export const MAX_AHEAD_MS = DAY_MS;
const UUID_V7 = /^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;

function checkInteger(path: string, value: number, min: number, max: number): void {
  if (Number.isSafeInteger(value) && value >= min && value <= max && !Object.is(value, -0)) return;
  throw invalid(path, `must be a whole number from ${min} to ${max}`);
}

function checkId(id: string): void {
  if (!UUID_V7.test(id)) throw invalid('/id', 'must be a UUIDv7 in lower case');
}

// Every check below throws ServiceError INVALID_REQUEST with the JSON pointer of the argument.

export function checkGrant({ id, amountMicros, note }: GrantArguments): void {
  checkId(id);
  checkInteger('/amountMicros', amountMicros, 1, MAX_AMOUNT_MICROS);
  if (note.length > MAX_NOTE_LENGTH) throw invalid('/note', `must have at most ${MAX_NOTE_LENGTH} characters`);
}

export function checkReserve({ id, amountMicros, ttlMs, maxOpen }: ReserveArguments): void {
  checkId(id);
  checkInteger('/amountMicros', amountMicros, 0, MAX_AMOUNT_MICROS);
  checkInteger('/ttlMs', ttlMs, MIN_TTL_MS, MAX_TTL_MS);
  checkInteger('/maxOpen', maxOpen, 0, 1e6);
}

export function checkExtend(id: string, ttlMs: number): void {
  checkId(id);
  checkInteger('/ttlMs', ttlMs, MIN_TTL_MS, MAX_TTL_MS);
}

export function checkSettle(id: string, chargeMicros: number): void {
  checkId(id);
  checkInteger('/chargeMicros', chargeMicros, 0, MAX_AMOUNT_MICROS);
}

export const checkRelease = checkId;

export function checkPage(before: number, limit: number): void {
  checkInteger('/beforeSequence', before, 0, Number.MAX_SAFE_INTEGER);
  checkInteger('/pageSize', limit, 1, MAX_PAGE_SIZE);
}

/**
 * Whether the ledger certainly remembers the id if it was used: its time is at most `retentionMs` ago and at most
 * MAX_AHEAD_MS ahead of the clock.
 */
export function isInWindow(id: string, nowMs: number, retentionMs: number): boolean {
  const madeMs = timeOfId(id);
  return madeMs >= nowMs - retentionMs && madeMs <= nowMs + MAX_AHEAD_MS;
}
