import { invalid } from 'platform/core/errors.ts';

/**
 * Reads a member that holds a JSON object as text.
 * @param name of the body's member
 * @throws ServiceError INVALID_REQUEST naming the member when it is missing, too large or no object
 */
export function readObject(name: string, text: string | undefined, maxBytes: number): Record<string, unknown> {
  if (text === undefined) throw invalid(`/${name}`, `${name} is required`);
  if (Buffer.byteLength(text) > maxBytes) throw invalid(`/${name}`, `${name} is larger than ${maxBytes} bytes`);
  const value = parsed(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw invalid(`/${name}`, `${name} must be a JSON object`);
  return value as Record<string, unknown>;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
