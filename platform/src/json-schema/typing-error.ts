/** A shorter word is near too many others. */
const SHORTEST = 4;

/**
 * Whether a word is a known one but for one letter, which is missing, added or another, for two that have changed
 * places, or for capitals. A word that differs by a digit ("uuid7", "ipv5") or in its first letter ("guid", "iri") is
 * rather one of its own.
 */
export function isTypingError(word: string, known: string): boolean {
  if (known.length < SHORTEST || Math.abs(word.length - known.length) > 1) return false;
  if (word.toLowerCase() === known.toLowerCase()) return true;
  const start = commonLength(word, known);
  const [restOfWord, restOfKnown] = [word.slice(start), known.slice(start)];
  const end = commonLength([...restOfWord].reverse().join(''), [...restOfKnown].reverse().join(''));
  const [wrong, right] = [restOfWord.slice(0, restOfWord.length - end), restOfKnown.slice(0, restOfKnown.length - end)];
  if (/\d/.test(wrong + right)) return false;
  const isSwapped = wrong.length === 2 && right.length === 2 && wrong[0] === right[1] && wrong[1] === right[0];
  if (isSwapped) return true;
  if (wrong.length > 1 || right.length > 1) return false;
  return start > 0 || right === '$';
}

function commonLength(a: string, b: string): number {
  let length = 0;
  while (length < a.length && length < b.length && a[length] === b[length]) length++;
  return length;
}
