import { parseJson } from 'platform/core/parse-json.ts';
import { pointerTo } from 'platform/json/pointer.ts';
import { MAX_MESSAGE_CHARACTERS } from './runners/evaluation.ts';

/**
 * Why an output is none, as a sentence for the caller, without any value.
 * @param path begins at the output
 */
export function invalidOutput(path: string, message: string): string {
  const place = path === '' ? '' : `${path} `;
  return `The agent's output is not acceptable: ${place}${message}`.slice(0, MAX_MESSAGE_CHARACTERS).toWellFormed();
}

/** @param place the names that lead to it, as a JSON list */
export const invalidOutputAt = (place: string, message: string): string =>
  invalidOutput((parseJson(place) as (string | number)[]).map(pointerTo).join(''), message);
