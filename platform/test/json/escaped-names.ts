import fc from 'fast-check';

const CHARACTERS = ['\\', '"', '\n', '\t', '\u0001', '\u001f', 'n', 'u', '0', 'a', '/', 'é', '😀'];

/** An object with a name that one of the many ways to spell it in JSON has, and its text. */
export interface Spelled {
  name: string;
  json: string;
}

/** Many are of one length and have escapes, because these are what V8 takes for each other. */
const spelledName = fc
  .oneof(
    fc.tuple(fc.tuple(fc.constantFrom(...CHARACTERS.slice(0, 6)), fc.constant(false))),
    fc.array(fc.tuple(fc.constantFrom(...CHARACTERS), fc.boolean()), { minLength: 1, maxLength: 3 }),
  )
  .map((parts) => ({
    name: parts.map(([character]) => character).join(''),
    json: `"${parts.map(([character, isEscaped]) => (isEscaped ? escaped(character) : JSON.stringify(character).slice(1, -1))).join('')}"`,
  }));

/** Several, which V8 takes for each other if they follow the same name. */
export const spelledNames = fc.array(spelledName, { minLength: 4, maxLength: 4 });

let objects = 0;
/**
 * Makes texts of objects with a spelled name behind one that no earlier object has. V8 mixes up names that follow
 * another only as long as it has seen one there, so a test makes no such object before it has what it tests.
 */
export function textsWith(): { textOf(spelled: Spelled): string; valueOf(spelled: Spelled): object } {
  const first = `first${objects++}`;
  return {
    textOf: ({ json }) => `{"${first}":1,${json}:2}`,
    valueOf: ({ name }) => ({ [first]: 1, [name]: 2 }),
  };
}

const escaped = (text: string): string =>
  Array.from({ length: text.length }, (_, i) => `\\u${text.charCodeAt(i).toString(16).padStart(4, '0')}`).join('');
