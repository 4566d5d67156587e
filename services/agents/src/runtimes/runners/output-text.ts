const [SPACE, QUOTE, COMMA, ZERO, NINE, COLON, BACKSLASH] = [32, 34, 44, 48, 57, 58, 92] as const;
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [91, 93, 123, 125] as const;
const NUMBER = /-?[0-9][0-9.e+-]*/y;
const LITERAL = /true|false|null/y;
/** The escapes that JSON.stringify writes in six characters: a lone surrogate, and some below the space. */
const ESCAPE = /\\u(?:00(?:0[0-7be-f]|1[0-9a-f])|d[89a-f][0-9a-f]{2})/y;

/**
 * Whether a text is what JSON.stringify writes of some value, with the members of objects in any order: no spaces, no
 * repeated name, one spelling of each string and number. Reads the text once, and makes no value of it.
 * @param maxLevels of arrays and objects within each other
 */
export function isOutputText(text: string, maxLevels: number): boolean {
  let at = 0;
  return isValue(maxLevels) && at === text.length;

  function isValue(levels: number): boolean {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return isString();
    if (code === OPEN_OBJECT) return levels > 0 && isObject(levels);
    if (code === OPEN_ARRAY) return levels > 0 && isArray(levels);
    return code > COLON ? isLiteral() : isNumber();
  }

  function isLiteral(): boolean {
    const literal = matchOf(LITERAL);
    at += literal?.length ?? 0;
    return literal !== undefined;
  }

  function isNumber(): boolean {
    const from = at;
    let code = text.charCodeAt(at);
    while (code >= ZERO && code <= NINE) code = text.charCodeAt(++at);
    const digits = at - from;
    const isShortInteger =
      digits > 0 && digits < 16 && (code === COMMA || code === CLOSE_ARRAY || code === CLOSE_OBJECT);
    if (isShortInteger) return digits === 1 || text.charCodeAt(from) !== ZERO;
    at = from;
    const number = matchOf(NUMBER);
    if (number === undefined) return false;
    at += number.length;
    return String(Number(number)) === number;
  }

  function matchOf(pattern: RegExp): string | undefined {
    pattern.lastIndex = at;
    return pattern.exec(text)?.[0];
  }

  function isArray(levels: number): boolean {
    if (text.charCodeAt(++at) === CLOSE_ARRAY) return ++at > 0;
    for (;;) {
      if (!isValue(levels - 1)) return false;
      const code = text.charCodeAt(at++);
      if (code !== COMMA) return code === CLOSE_ARRAY;
    }
  }

  function isObject(levels: number): boolean {
    if (text.charCodeAt(++at) === CLOSE_OBJECT) return ++at > 0;
    let first: string | undefined;
    let further: Set<string> | undefined;
    for (;;) {
      const from = at;
      if (text.charCodeAt(at) !== QUOTE || !isString() || text.charCodeAt(at) !== COLON) return false;
      const name = text.slice(from, at++);
      if (name === first || further?.has(name)) return false;
      if (first === undefined) first = name;
      else (further ??= new Set()).add(name);
      if (!isValue(levels - 1)) return false;
      const code = text.charCodeAt(at++);
      if (code !== COMMA) return code === CLOSE_OBJECT;
    }
  }

  function isString(): boolean {
    for (let i = at + 1; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code === QUOTE) {
        at = i + 1;
        return true;
      }
      if (code < SPACE) return false;
      if (code === BACKSLASH) {
        if ('"\\bfnrt'.includes(text.charAt(i + 1))) {
          i++;
          continue;
        }
        at = i;
        const escape = matchOf(ESCAPE);
        if (escape === undefined) return false;
        i += escape.length - 1;
        // A pair of surrogates is written as it is.
        if (/^\\ud[89ab]/.test(escape) && text.startsWith('\\ud', i + 1) && /[c-f]/.test(text.charAt(i + 4)))
          return false;
      } else if (code >= 0xd800 && code <= 0xdfff) {
        const low = text.charCodeAt(++i);
        if (code >= 0xdc00 || !(low >= 0xdc00 && low <= 0xdfff)) return false;
      }
    }
    return false;
  }
}
