const MINUS = 0x2d,
  PLUS = 0x2b,
  DOT = 0x2e,
  ZERO = 0x30,
  NINE = 0x39,
  SMALL_E = 0x65;

// Behind the end of a text is undefined, which is no digit.
const isDigit = (code: number): boolean => code >= ZERO && code <= NINE;

/** Where the number that starts at `start` ends, or -1 for a syntax error. */
export function endOfNumber(text: Uint8Array, start: number): number {
  let at = text[start] === MINUS ? start + 1 : start;
  if (!isDigit(text[at]!)) return -1;
  if (text[at++] !== ZERO) while (isDigit(text[at]!)) at++;
  if (text[at] === DOT) {
    if (!isDigit(text[++at]!)) return -1;
    while (isDigit(text[at]!)) at++;
  }
  if ((text[at]! | 0x20) === SMALL_E) {
    at++;
    if (text[at] === PLUS || text[at] === MINUS) at++;
    if (!isDigit(text[at]!)) return -1;
    while (isDigit(text[at]!)) at++;
  }
  return at;
}

/** A positive decimal number, 0.digits × 10^exponent. */
interface Decimal {
  digits: Uint8Array;
  exponent: number;
}
const decimal = (integer: string, exponent = integer.length): Decimal => ({ digits: Buffer.from(integer), exponent });
/** From here on, a number becomes a double of 2^53 or more: 2^53 - 1/2. */
const UNSAFE = decimal('90071992547409915', 16);
/** From here on, it becomes 1e21 or more, which JSON.stringify writes with an exponent instead of all digits. */
const WITH_EXPONENT = decimal(String(10n ** 21n - 2n ** 16n));
/** From here on, it becomes Infinity. */
const INFINITE = decimal(String(2n ** 1024n - 2n ** 970n));

/**
 * Why a double does not keep the value of a number: it is an integer beyond ±(2^53−1), or overflows. Compares digits,
 * because Number() needs a string for each number and takes five times as long.
 * @param start where the number begins in the text, and `end` where it ends; its syntax is valid
 * @param anyInteger only what overflows is a violation
 */
export function numberViolation(text: Uint8Array, start: number, end: number, anyInteger = false): string | undefined {
  let significant = -1;
  let dot = -1;
  let at = text[start] === MINUS ? start + 1 : start;
  for (; at < end; at++) {
    const code = text[at]!;
    if (code === DOT) dot = at;
    else if (!isDigit(code)) break;
    else if (significant < 0 && code !== ZERO) significant = at;
  }
  if (significant < 0) return undefined;
  const isInteger = dot < 0 && at === end;
  const pointAt = dot < 0 ? at : dot;
  const exponent = pointAt - significant + (pointAt < significant ? 1 : 0) + exponentAt(text, at + 1, end);
  const reaches = (limit: Decimal): boolean =>
    exponent === limit.exponent ? hasDigitsFrom(text, significant, at, limit.digits) : exponent > limit.exponent;

  if (!reaches(UNSAFE)) return undefined;
  if (anyInteger) return reaches(INFINITE) ? 'The number is too large' : undefined;
  if (isInteger) return 'The integer is beyond ±(2^53−1)';
  if (!reaches(WITH_EXPONENT)) return 'The number is an integer beyond ±(2^53−1)';
  return reaches(INFINITE) ? 'The number is too large' : undefined;
}

/** The number after the "e", which begins at `start`; 0 if there is none. */
function exponentAt(text: Uint8Array, start: number, end: number): number {
  let exponent = 0;
  for (let at = start; at < end; at++) if (isDigit(text[at]!)) exponent = exponent * 10 + text[at]! - ZERO;
  return text[start] === MINUS ? -exponent : exponent;
}

/** Are the digits of the text, followed by zeros, at least these? */
function hasDigitsFrom(text: Uint8Array, start: number, end: number, digits: Uint8Array): boolean {
  let at = start;
  for (const digit of digits) {
    if (text[at] === DOT) at++;
    const code = at < end ? text[at++]! : ZERO;
    if (code !== digit) return code > digit;
  }
  return true;
}
