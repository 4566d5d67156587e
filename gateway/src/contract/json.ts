import { ServiceError } from 'platform/core/errors.ts';

const MAX_DEPTH = 64;

/**
 * Parses JSON text. Rejects what would not keep its value until a client reads it back: duplicate names, `__proto__`,
 * more than 64 levels, NUL, lone surrogates, and numbers that a double cannot represent. The spelling may change (1.0
 * to 1).
 * @throws ServiceError MALFORMED_JSON for a syntax error, else INVALID_REQUEST with the JSON pointer of the first
 * violation
 */
export function parseJson(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // without the cause, because its message quotes the body
    throw new ServiceError('MALFORMED_JSON');
  }
  rejectLossy(text);
  return value;
}

const MAX_NAME = 100;

/**
 * One step of a JSON pointer (RFC 6901): "a/b" becomes "/a~1b". A name of more than 100 characters is cut to 99 and
 * "…", so that a reply does not echo a long name.
 */
export function pointerTo(name: string | number): string {
  const text = String(name);
  const short = text.length <= MAX_NAME ? text : `${text.slice(0, MAX_NAME - 1).toWellFormed()}…`;
  return `/${short.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** An object or array around the current position. */
interface Level {
  /** The names so far; undefined in an array. */
  names: Set<string> | undefined;
  /** Current name or index. */
  at: string | number;
  expectsName: boolean;
}

const QUOTE = 0x22,
  COMMA = 0x2c,
  MINUS = 0x2d,
  ZERO = 0x30,
  NINE = 0x39,
  BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b,
  CLOSE_BRACKET = 0x5d,
  OPEN_BRACE = 0x7b,
  CLOSE_BRACE = 0x7d;

/** One pass over text that JSON.parse has accepted, so it need not check the syntax. */
function rejectLossy(text: string): void {
  const levels: Level[] = [];
  let level: Level | undefined;
  const reject = (message: string): never => {
    const path = levels.map(({ at }) => pointerTo(at)).join('');
    throw new ServiceError('INVALID_REQUEST', message, { details: [{ path, message }] });
  };
  if (!text.isWellFormed()) reject('The text holds a lone surrogate');

  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) {
      const end = closingQuote(text, i + 1);
      const string = unescape(text, i, end);
      i = end;
      if (level?.expectsName) {
        level.at = string;
        if (string === '__proto__') reject('The name __proto__ is not allowed');
        if (level.names?.has(string)) reject('The name appears twice in its object');
        level.names?.add(string);
        level.expectsName = false;
      }
      if (string.includes('\0')) reject('The character NUL is not allowed');
      if (!string.isWellFormed()) reject('The string holds a lone surrogate');
    } else if (code === MINUS || (code >= ZERO && code <= NINE)) {
      const end = endOfNumber(text, i + 1);
      const violation = numberViolation(text.slice(i, end));
      if (violation) reject(violation);
      i = end - 1;
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      if (levels.length === MAX_DEPTH) reject(`The value is nested deeper than ${MAX_DEPTH} levels`);
      level =
        code === OPEN_BRACE
          ? { names: new Set(), at: '', expectsName: true }
          : { names: undefined, at: 0, expectsName: false };
      levels.push(level);
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      levels.pop();
      level = levels.at(-1);
    } else if (code === COMMA && level) {
      if (level.names) level.expectsName = true;
      else level.at = Number(level.at) + 1;
    }
  }
}

function closingQuote(text: string, from: number): number {
  for (let end = text.indexOf('"', from); ; end = text.indexOf('"', end + 1)) {
    let escapes = 0;
    while (text.charCodeAt(end - 1 - escapes) === BACKSLASH) escapes++;
    if (escapes % 2 === 0) return end;
  }
}

function unescape(text: string, open: number, close: number): string {
  const raw = text.slice(open + 1, close);
  return raw.includes('\\') ? (JSON.parse(text.slice(open, close + 1)) as string) : raw;
}

function endOfNumber(text: string, from: number): number {
  let end = from;
  // digits . e E + -
  for (
    let code = text.charCodeAt(end);
    (code >= ZERO && code <= NINE) || code === 0x2e || (code | 0x20) === 0x65 || code === 0x2b || code === MINUS;
    code = text.charCodeAt(end)
  )
    end++;
  return end;
}

function numberViolation(literal: string): string | undefined {
  if (literal.length < 16 && !/e/i.test(literal)) return undefined;
  const value = Number(literal);
  if (/^-?\d+$/.test(literal)) return Number.isSafeInteger(value) ? undefined : 'The integer is beyond ±(2^53−1)';
  if (!Number.isFinite(value)) return 'The number is too large';
  // from 1e21 on, JSON.stringify writes an exponent instead of all digits
  const isInexact = Number.isInteger(value) && !Number.isSafeInteger(value) && Math.abs(value) < 1e21;
  return isInexact ? 'The number is an integer beyond ±(2^53−1)' : undefined;
}
