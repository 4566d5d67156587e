import { parseJson } from 'platform/core/parse-json.ts';
import { pointerTo } from 'platform/json/pointer.ts';

/** A message has at most 1,000 characters in all (MAX_MESSAGE_CHARACTERS). */
const MAX_PATH = 800;

/**
 * Why an output is none, as a sentence for the caller, without any value.
 * @param path begins at the output
 */
export function invalidOutput(path: string, message: string): string {
  const short = path.length <= MAX_PATH ? path : `${path.slice(0, MAX_PATH - 1)}…`;
  return `The agent's output is not acceptable: ${short}${short === '' ? '' : ' '}${message}`.toWellFormed();
}

/** @param place the names that lead to it, as a JSON list */
export const invalidOutputAt = (place: string, message: string): string =>
  invalidOutput((parseJson(place) as (string | number)[]).map(pointerTo).join(''), message);
