import { ServiceError } from 'platform/core/errors.ts';
import { strictJsonOf } from 'platform/json/strict-text.ts';
import { invalidOutput } from './invalid-output.ts';

/** What an agent gave is JSON, and can be no output. The message may be shown to the caller. */
export class InvalidOutputError extends Error {
  override readonly name = 'InvalidOutputError';
}

/**
 * Reads an output as the gateway reads a body (ADR 19): what would not come back equal is no output. So for every
 * runtime, whatever the output was made by.
 * @param placeOf the place in the output, of a place in what is read
 * @returns JSON text to splice into replies
 * @throws InvalidOutputError; SyntaxError for what is no JSON
 */
export function readOutput(given: string | Buffer, placeOf = (path: string): string => path): Buffer {
  try {
    return strictJsonOf(given);
  } catch (error) {
    const [violation] = error instanceof ServiceError ? error.details : [];
    if (!violation) throw new SyntaxError('not JSON', { cause: error });
    throw new InvalidOutputError(invalidOutput(placeOf(violation.path), violation.message));
  }
}
