import type { SQLInputValue, SQLOutputValue } from 'node:sqlite';
import { BYTE_PLACES } from '../../core/ids.ts';

const [FALSE, TRUE] = [Uint8Array.of(0), Uint8Array.of(1)];

/** True for a value that a column can hold. */
export const fitsCell = (value: unknown): value is string | number | boolean =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';

/**
 * The value as a column holds it. Texts and numbers are stored as they are, booleans as one byte and, in fields of ids,
 * UUIDs as their 16 bytes: bytes sort as the lower-case text does. NULL stands for null and for an absent value; which
 * of them it is, the last column says.
 */
export function cellOf(value: string | number | boolean | null, isId: boolean): SQLInputValue {
  if (typeof value === 'string') return (isId && bytesOfId(value)) || value;
  // node:sqlite stores a number as 8 bytes of floating point, and a bigint in as few bytes as it needs.
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value;
  return value === null ? null : value ? TRUE : FALSE;
}

/** By the character code; -1 for what is no digit of a UUID in lower case. */
const DIGITS = Int8Array.from({ length: 128 }, (_, code) => '0123456789abcdef'.indexOf(String.fromCharCode(code)));
const DASH = 45;

/** The bytes of a UUID in lower case; undefined for any other text. */
function bytesOfId(text: string): Uint8Array | undefined {
  if (text.length !== 36) return undefined;
  for (const place of [8, 13, 18, 23]) if (text.charCodeAt(place) !== DASH) return undefined;
  const bytes = Buffer.allocUnsafe(16);
  for (let i = 0; i < 16; i++) {
    const place = BYTE_PLACES[i]!;
    const high = DIGITS[text.charCodeAt(place)] ?? -1;
    const low = DIGITS[text.charCodeAt(place + 1)] ?? -1;
    if (high < 0 || low < 0) return undefined;
    bytes[i] = high * 16 + low;
  }
  return bytes;
}

/** A list of values as JSON, for LISTED_CELL. */
export const listCell = (values: readonly (string | number | boolean)[], isId: boolean): string =>
  JSON.stringify(
    values.map((value) => {
      const cell = cellOf(value, isId);
      return cell instanceof Uint8Array ? [Buffer.from(cell).toString('hex')] : value;
    }),
  );
/** The cells of `listed`, a json_each of what `listCell` made. */
export const LISTED_CELL = "iif(listed.type = 'array', unhex(listed.value ->> 0), listed.value)";

/** To read an id as text costs a third of reading it as bytes. A text that is no UUID has a mark before it. */
export const idTextSql = (column: string): string =>
  `iif(typeof(${column}) = 'blob', hex(${column}), '=' || ${column})`;
/** The same for a column that holds UUIDs and NULL, which becomes an empty text. */
export const uuidTextSql = (column: string): string => `hex(${column})`;
export function idOfText(text: string): string {
  if (text.startsWith('=')) return text.slice(1);
  const hex = text.toLowerCase();
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** The value of a cell that is not NULL. */
export function valueOfCell(cell: NonNullable<SQLOutputValue>): unknown {
  if (!(cell instanceof Uint8Array)) return cell;
  return cell.length === 1 ? cell[0] === 1 : idOfText(Buffer.from(cell).toString('hex'));
}
