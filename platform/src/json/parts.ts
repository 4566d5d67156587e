import { parseJson } from '../core/parse-json.ts';

// The parts of JSON that strictJson returned. Only one level is read, and no value is made of what is below it.

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const OPEN_BRACE = 0x7b;

export const isArray = (json: Buffer): boolean => json[0] === OPEN_BRACKET;
export const isObject = (json: Buffer): boolean => json[0] === OPEN_BRACE;

/** The members of an object in their order: the name, and the value as JSON. */
export function* membersOf(json: Buffer): Generator<[name: string, value: Buffer]> {
  for (let at = 1; at < json.length - 1;) {
    const colon = endOfValue(json, at);
    const end = endOfValue(json, colon + 1);
    yield [parseJson(json.toString('utf8', at, colon)) as string, json.subarray(colon + 1, end)];
    at = end + 1;
  }
}

/** The elements of an array. */
export function* elementsOf(json: Buffer): Generator<Buffer> {
  for (let at = 1; at < json.length - 1;) {
    const end = endOfValue(json, at);
    yield json.subarray(at, end);
    at = end + 1;
  }
}

/** The position behind the value, or the name, that begins at `start`. */
function endOfValue(json: Buffer, start: number): number {
  let depth = 0;
  for (let at = start; ; at++) {
    switch (json[at]!) {
      case QUOTE:
        at = closingQuote(json, at);
        break;
      case OPEN_BRACKET:
      case OPEN_BRACE:
        depth++;
        break;
      case 0x5d: // closing ones
      case 0x7d:
        if (depth === 0) return at;
        depth--;
        break;
      case 0x2c: // comma and colon
      case 0x3a:
        if (depth === 0) return at;
    }
  }
}

function closingQuote(json: Buffer, opening: number): number {
  for (let at = opening + 1; ; at++) {
    const code = json[at];
    if (code === QUOTE) return at;
    if (code === BACKSLASH) at++;
  }
}
