import { v7, validate } from 'uuid';
import { systemClock } from './clock.ts';

/** What a clock may be set back by and ids rise all the same; after a larger step they follow the clock. */
const STEP_BACK_MS = 1_000;
let lastMs = 0;
let sequence = 0;

/** UUIDv7 (RFC 9562): rises with time, so the newest has the highest text. */
export function newId(): string {
  const now = systemClock.now();
  const random = crypto.getRandomValues(new Uint8Array(16));
  if (now > lastMs || lastMs - now >= STEP_BACK_MS) {
    lastMs = now;
    // the first of 32 bits is left for counting up
    sequence = new DataView(random.buffer).getUint32(0) >>> 1;
  } else {
    sequence = (sequence + 1) >>> 0;
    if (sequence === 0) lastMs++;
  }
  return v7({ msecs: lastMs, seq: sequence, random });
}

/** True for any UUID in canonical lower or upper case. */
export const isUuid = (text: string): boolean => validate(text);

/** Milliseconds since the epoch in the first 48 bits of a UUIDv7. */
export const timeOfId = (id: string): number => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16);
