import { v7, validate } from 'uuid';
import { storeAheadMs } from './clock.ts';

/** UUIDv7 (RFC 9562): rises with time, so the newest has the highest text. */
export function newId(): string {
  const id = v7();
  if (storeAheadMs() === 0) return id;
  const time = (timeOfId(id) + storeAheadMs()).toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}${id.slice(13)}`;
}

/** True for any UUID in canonical lower or upper case. */
export const isUuid = (text: string): boolean => validate(text);

/** Milliseconds since the epoch in the first 48 bits of a UUIDv7. */
export const timeOfId = (id: string): number => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16);
