/** Where the scan is in the text that it reads and in the one that it writes, and what is wrong with the string. */
export interface StringCopy {
  readonly input: Uint8Array;
  at: number;
  readonly output: Uint8Array;
  length: number;
  violation: string | undefined;
}

export const LONE_SURROGATE = 'The string holds a lone surrogate';

const BACKSLASH = 0x5c;
const SPACE = 0x20;
const SMALL_U = 0x75;
const ZERO = 0x30;
/** By digit: its character. */
const HEX = Buffer.from('0123456789abcdef');
const REPLACEMENT = 0xfffd;

/** By the letter after a backslash: the character that the escape stands for. */
const CHARACTERS = new Uint8Array(128);
/** By character: the letter of the escape that JSON.stringify writes. */
const LETTERS = new Uint8Array(128);
for (const [letter, character] of ['""', '\\\\', '//', 'b\b', 'f\f', 'n\n', 'r\r', 't\t'] as Iterable<string[]>) {
  CHARACTERS[letter!.charCodeAt(0)] = character!.charCodeAt(0);
  if (character !== '/') LETTERS[character!.charCodeAt(0)] = letter!.charCodeAt(0);
}

/**
 * Copies the escape whose backslash is at `copy.at`, or the pair of escapes that make one character, as JSON.stringify
 * would write it. So equal strings become equal bytes, and no string becomes longer.
 * @returns false for a syntax error
 */
export function copyEscape(copy: StringCopy): boolean {
  const { input } = copy;
  let character = CHARACTERS[input[copy.at + 1]!] ?? 0;
  if (character !== 0) {
    copy.at += 2;
  } else {
    character = codeUnitAt(input, copy.at);
    if (character < 0) return false;
    copy.at += 6;
    if (isHighSurrogate(character)) {
      const low = codeUnitAt(input, copy.at);
      if (low >= 0xdc00 && low <= 0xdfff) {
        character = 0x1_0000 + ((character - 0xd800) << 10) + (low - 0xdc00);
        copy.at += 6;
      }
    }
    if (character === 0) copy.violation ??= 'The character NUL is not allowed';
    if (character >= 0xd800 && character <= 0xdfff) {
      copy.violation ??= LONE_SURROGATE;
      character = REPLACEMENT;
    }
  }
  write(copy, character);
  return true;
}

const isHighSurrogate = (code: number): boolean => code >= 0xd800 && code < 0xdc00;

/** The code unit of the escape \uXXXX at a position, or -1 if there is none. */
function codeUnitAt(input: Uint8Array, at: number): number {
  if (input[at] !== BACKSLASH || input[at + 1] !== SMALL_U) return -1;
  let unit = 0;
  for (let i = at + 2; i < at + 6; i++) {
    const code = input[i]!;
    const letter = code | 0x20;
    if (code >= 0x30 && code <= 0x39) unit = unit * 16 + code - 0x30;
    else if (letter >= 0x61 && letter <= 0x66) unit = unit * 16 + letter - 0x57;
    else return -1;
  }
  return unit;
}

/** Writes one character of a string. */
function write(copy: StringCopy, character: number): void {
  const { output } = copy;
  let { length } = copy;
  if (character >= 0x1_0000) {
    output[length++] = 0xf0 | (character >> 18);
    output[length++] = 0x80 | ((character >> 12) & 0x3f);
  } else if (character >= 0x800) output[length++] = 0xe0 | (character >> 12);
  if (character >= 0x800) output[length++] = 0x80 | ((character >> 6) & 0x3f);
  else if (character >= 0x80) output[length++] = 0xc0 | (character >> 6);
  if (character >= 0x80) output[length++] = 0x80 | (character & 0x3f);
  else if (LETTERS[character] !== 0) {
    output[length++] = BACKSLASH;
    output[length++] = LETTERS[character]!;
  } else if (character < SPACE) {
    output[length++] = BACKSLASH;
    output[length++] = SMALL_U;
    output[length++] = ZERO;
    output[length++] = ZERO;
    output[length++] = HEX[character >> 4]!;
    output[length++] = HEX[character & 0xf]!;
  } else output[length++] = character;
  copy.length = length;
}
