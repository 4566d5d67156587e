import { v7, validate } from 'uuid';
import { systemClock } from './clock.ts';

/** Ids continue to rise when the clock is set back by less than this; after a larger step they follow the clock. */
const MAX_STEP_BACK_MS = 1_000;
let lastMs = 0;
let sequence = 0;

const ID_BYTES = 16;
/** Drawn for many ids at once: a draw for one costs several times as much as the rest of making it. */
const randomBytes = new Uint8Array(256 * ID_BYTES);
let usedBytes = randomBytes.length;

function randomForId(): Uint8Array {
  if (usedBytes === randomBytes.length) {
    crypto.getRandomValues(randomBytes);
    usedBytes = 0;
  }
  return randomBytes.subarray(usedBytes, (usedBytes += ID_BYTES));
}

/**
 * A new UUIDv7 (RFC 9562): ids sort by the time at which they were made.
 * @param now in milliseconds since 1970
 */
export function newId(now = systemClock.now()): string {
  const random = randomForId();
  if (now > lastMs || lastMs - now >= MAX_STEP_BACK_MS) {
    lastMs = now;
    // The highest of the 32 bits starts as 0, so that there is room to count up.
    sequence = new DataView(random.buffer, random.byteOffset).getUint32(0) >>> 1;
  } else {
    sequence = (sequence + 1) >>> 0;
    if (sequence === 0) lastMs++;
  }
  return textOf(v7({ msecs: lastMs, seq: sequence, random }, idBytes));
}

/**
 * The UUIDv7 of this time that has these bytes in place of random ones: always the same.
 * @param now in milliseconds since 1970
 * @param random at least 16 bytes
 */
export const idOf = (now: number, random: Uint8Array): string => textOf(v7({ msecs: now, random }, idBytes));

const idBytes = Buffer.alloc(ID_BYTES);
const DIGITS = Buffer.from('0123456789abcdef');
/** Where the first digit of each byte stands in an id. */
export const BYTE_PLACES = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
const idText = Buffer.from('xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx');

/** A third of the time of the text that `v7` makes, which V8 keeps as twenty pieces until it is used. */
function textOf(bytes: Uint8Array): string {
  for (let i = 0; i < ID_BYTES; i++) {
    const byte = bytes[i]!;
    const place = BYTE_PLACES[i]!;
    idText[place] = DIGITS[byte >> 4]!;
    idText[place + 1] = DIGITS[byte & 15]!;
  }
  return idText.toString('latin1');
}

/** True for any UUID in canonical lower or upper case. */
export const isUuid = (text: string): boolean => validate(text);

/** Ids sort before this one exactly if they were made before this time, in milliseconds since 1970. */
export const firstIdOf = (ms: number): string =>
  Math.max(0, Math.trunc(ms))
    .toString(16)
    .padStart(12, '0')
    .replace(/^(.{8})(.{4})$/, '$1-$2-7000-8000-000000000000');

/** The time in a UUIDv7 (its first 48 bits), in milliseconds since 1970. */
export const timeOfId = (id: string): number => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16);
