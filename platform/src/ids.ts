import { v7, validate } from 'uuid';

/** UUIDv7 (RFC 9562): rises with time, so the newest has the highest text. */
export const newId = (): string => v7();

/** True for any UUID in canonical lower or upper case. */
export const isUuid = (text: string): boolean => validate(text);

/** Milliseconds since the epoch in the first 48 bits of a UUIDv7. */
export const timeOfId = (id: string): number => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16);
