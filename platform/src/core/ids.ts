import { v7, validate } from 'uuid';
import { systemClock } from './clock.ts';

/** Ids continue to rise when the clock is set back by less than this; after a larger step they follow the clock. */
const MAX_STEP_BACK_MS = 1_000;
let lastMs = 0;
let sequence = 0;

/** A new UUIDv7 (RFC 9562): ids sort by the time at which they were made. */
export function newId(): string {
  const now = systemClock.now();
  const random = crypto.getRandomValues(new Uint8Array(16));
  if (now > lastMs || lastMs - now >= MAX_STEP_BACK_MS) {
    lastMs = now;
    // The highest of the 32 bits starts as 0, so that there is room to count up.
    sequence = new DataView(random.buffer).getUint32(0) >>> 1;
  } else {
    sequence = (sequence + 1) >>> 0;
    if (sequence === 0) lastMs++;
  }
  return v7({ msecs: lastMs, seq: sequence, random });
}

/** True for any UUID in canonical lower or upper case. */
export const isUuid = (text: string): boolean => validate(text);

/** The time in a UUIDv7 (its first 48 bits), in milliseconds since 1970. */
export const timeOfId = (id: string): number => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16);
