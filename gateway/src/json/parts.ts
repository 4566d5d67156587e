// The parts of a text that strictJson returned. Only one level is read, and no value is made of what is below it.

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** The members of an object in their order: the name, and the value as JSON text. */
export function* membersOf(text: string): Generator<[name: string, value: string]> {
  for (let at = 1; at < text.length - 1;) {
    const colon = endOfValue(text, at);
    const end = endOfValue(text, colon + 1);
    yield [JSON.parse(text.slice(at, colon)) as string, text.slice(colon + 1, end)];
    at = end + 1;
  }
}

/** The elements of an array as JSON texts. */
export function* elementsOf(text: string): Generator<string> {
  for (let at = 1; at < text.length - 1;) {
    const end = endOfValue(text, at);
    yield text.slice(at, end);
    at = end + 1;
  }
}

/** The position behind the value, or the name, that begins at `start`. */
function endOfValue(text: string, start: number): number {
  let depth = 0;
  for (let at = start; ; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        at = closingQuote(text, at);
        break;
      case 0x5b: // brackets and braces
      case 0x7b:
        depth++;
        break;
      case 0x5d:
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

function closingQuote(text: string, opening: number): number {
  for (let at = opening + 1; ; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at;
    if (code === BACKSLASH) at++;
  }
}
