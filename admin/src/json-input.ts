import { isUtf8 } from 'node:buffer';
import { ServiceError } from 'platform/core/errors.ts';
import { encodingFault, jsonOfFile } from 'platform/json/json-file.ts';
import { placesOf } from './json-places.ts';
import { UsageError } from './usage-error.ts';

/** JSON that the operator gives: a file, an option or standard input. */
export interface JsonInput {
  /** As its author wrote it. */
  text: string;
  /** Without white space. */
  json: Buffer;
  /** The line of the member at this JSON pointer, or of the nearest one around it; 1 is the first. */
  lineOf(pointer: string): number;
}

/** What is wrong with an input, and where. */
export class InputError extends UsageError {
  readonly line: number;
  /** JSON pointer; empty when the whole input is at fault. */
  readonly path: string;
  /** Without the place. */
  readonly fault: string;
  constructor(source: string, { line, path, message }: { line: number; path: string; message: string }) {
    super(`${source}:${line}: ${path === '' ? '' : `${path}: `}${message}`);
    this.line = line;
    this.path = path;
    this.fault = message;
  }
}

/**
 * Reads JSON by the rules of REST, so that nothing of it is changed silently.
 * @param source as the user knows it: the name of a file or an option
 * @param schemas as in strictJson
 * @throws InputError
 */
export function readJsonInput(bytes: Buffer, source: string, schemas: readonly string[] = []): JsonInput {
  const text = bytes.toString().replace(/^\ufeff/, '');
  try {
    return { ...jsonOfFile(bytes, schemas), lineOf: (pointer) => placesOf(text).lineOf(pointer) };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    throw new InputError(source, faultOf(error, bytes, text));
  }
}

function faultOf(error: ServiceError, bytes: Buffer, text: string): { line: number; path: string; message: string } {
  const encoding = encodingFault(bytes);
  if (encoding !== undefined) return { line: lineWithoutUtf8(bytes), path: '', message: encoding };
  const { lineOf, fault } = placesOf(text);
  const [violation] = error.details;
  if (violation) return { line: lineOf(violation.path), ...violation };
  return { line: fault?.line ?? 1, path: '', message: `is not JSON${fault ? `: ${fault.what}` : ''}` };
}

/** Each line is UTF-8 by itself, because no character has a line feed among its bytes. */
function lineWithoutUtf8(bytes: Buffer): number {
  for (let [line, from] = [1, 0]; ; line++) {
    const end = bytes.indexOf('\n', from);
    if (end === -1 || !isUtf8(bytes.subarray(from, end))) return line;
    from = end + 1;
  }
}
