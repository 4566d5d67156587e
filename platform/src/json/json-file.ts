import { isUtf8 } from 'node:buffer';
import { ServiceError } from '../core/errors.ts';
import { strictJson } from './strict-json.ts';

const BYTE_ORDER_MARK = Buffer.from('\ufeff');
const UTF_16_MARKS = [Buffer.of(0xff, 0xfe), Buffer.of(0xfe, 0xff)];

const startsWith = (bytes: Buffer, start: Buffer): boolean => bytes.subarray(0, start.length).equals(start);

/** Does the text of a file begin with the mark of UTF-8, which some editors write? It is no part of JSON. */
export const hasByteOrderMark = (bytes: Buffer): boolean => startsWith(bytes, BYTE_ORDER_MARK);

/** Why the bytes of a file are not UTF-8, as a predicate about it; undefined when they are. */
export function encodingFault(bytes: Buffer): string | undefined {
  if (UTF_16_MARKS.some((mark) => startsWith(bytes, mark))) return 'is UTF-16; save it as UTF-8';
  return isUtf8(bytes) ? undefined : 'has bytes that are not UTF-8';
}

/**
 * The JSON of a file or a pipe, by the rules of REST; a byte order mark before it is left out.
 * @param schemas as in strictJson
 * @returns the text as its author wrote it, and what strictJson makes of it
 * @throws ServiceError MALFORMED_JSON, INVALID_REQUEST with the JSON pointer
 */
export function jsonOfFile(bytes: Buffer, schemas: readonly string[] = []): { text: string; json: Buffer } {
  const fault = encodingFault(bytes);
  if (fault !== undefined) throw new ServiceError('MALFORMED_JSON', fault);
  const content = hasByteOrderMark(bytes) ? bytes.subarray(BYTE_ORDER_MARK.length) : bytes;
  return { text: content.toString(), json: strictJson(content, schemas) };
}
