import { compileSchema } from 'platform/schema.ts';
import { readObject } from '../json-object.ts';

/**
 * Takes the jsonSchema of a request, as text.
 * @throws ServiceError INVALID_REQUEST (missing, no object, too large), INVALID_SCHEMA (unsound)
 */
export function soundSchema(text: string | undefined, maxBytes: number): string {
  readObject('jsonSchema', text, maxBytes);
  compileSchema(text!, { path: '/jsonSchema' });
  return text!;
}
