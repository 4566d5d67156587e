import { segmentsOf } from './json-pointer.ts';

/** What a message about a member begins with when it leaves out what it is about. */
const PREDICATE = /^(must|may|cannot|is|are|has|needs|does|takes) /;
const MAX_NAME = 100;

/**
 * The message as a sentence about the member at the JSON pointer: "must be one of …" becomes "status must be one of …".
 * The pointer itself tells where the member is; the sentence names the member, or the element of a list.
 */
export function sentenceAbout(path: string, message: string): string {
  if (!PREDICATE.test(message)) return message;
  const subject = subjectAt(path);
  return message.startsWith(`${subject} `) ? message : `${subject} ${message}`;
}

function subjectAt(path: string): string {
  const names = segmentsOf(path).map(shortened);
  const last = names.findLastIndex((name) => !/^\d+$/.test(name));
  const name = names[last];
  if (name === undefined) return names.length === 0 ? 'The body' : `Element ${elementOf(names)}`;
  const indexes = names.slice(last + 1);
  return indexes.length === 0 ? name : `Element ${elementOf(indexes)} of ${name}`;
}

/** Counted from 1, as people do: "2", or "2.1" in a list of lists. */
const elementOf = (indexes: readonly string[]): string => indexes.map((index) => String(Number(index) + 1)).join('.');

const shortened = (name: string): string => (name.length <= MAX_NAME ? name : `${name.slice(0, MAX_NAME - 1)}…`);
