/**
 * JSON.parse for text whose names come from outside. V8 takes a name that is spelled with an escape for another one if
 * an earlier text of this process had that: after `{"a":1,"\\":2}`, also one of another organization, `{"a":1,"\"":2}`
 * has a member named backslash (https://github.com/nodejs/node/issues/63785). Text with such names is read without its
 * help. Realms of expressions compile the text of this function, so it refers to nothing outside of itself.
 * @throws SyntaxError
 */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (!text.includes('\\')) return value;

  const [SPACE, QUOTE, BACKSLASH, COMMA, COLON, ZERO, NINE] = [32, 34, 92, 44, 58, 48, 57];
  const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT, T, F, N] = [91, 93, 123, 125, 116, 102, 110];
  /** Longer strings with escapes are left to JSON.parse, whose fault concerns only names. */
  const SHORT = 100;

  return hasEscapedName() ? readAgain() : value;

  function hasEscapedName(): boolean {
    for (let i = text.indexOf('\\'); i >= 0; i = text.indexOf('\\', i)) {
      i = endOfString(i);
      while (text.charCodeAt(i) <= SPACE) i++;
      if (text.charCodeAt(i) === COLON) return true;
    }
    return false;
  }

  /** @param i of a character within the string. @returns the index of its closing quote, plus one */
  function endOfString(i: number): number {
    for (;;) {
      const code = text.charCodeAt(i++);
      if (code === BACKSLASH) i++;
      else if (code === QUOTE) return i;
    }
  }

  /** The text is JSON, which begins with `{` or `[`, so this does not look for faults. */
  function readAgain(): unknown {
    // Of each open array or object, in one of the two at the same index.
    const arrays: (unknown[] | undefined)[] = [];
    const objects: (Record<string, unknown> | undefined)[] = [];
    let array: unknown[] | undefined = [];
    let object: Record<string, unknown> | undefined;
    const root = array;
    let escape = text.indexOf('\\');
    for (let at = 0; ;) {
      let code = text.charCodeAt(at);
      while (code <= SPACE || code === COMMA) code = text.charCodeAt(++at);
      if (code === CLOSE_ARRAY || code === CLOSE_OBJECT) {
        at++;
        array = arrays.pop();
        object = objects.pop();
        if (array === root) return root[0];
        continue;
      }
      let name = '';
      let read: unknown;
      for (let isName = object !== undefined; ; isName = false) {
        if (code === QUOTE) {
          const from = at + 1;
          at = text.indexOf('"', from) + 1;
          if (escape >= 0 && escape < from) escape = text.indexOf('\\', from);
          const hasEscape = escape >= 0 && escape < at;
          if (hasEscape) at = endOfString(escape);
          read = hasEscape ? unescaped(from, at - 1) : text.slice(from, at - 1);
        }
        if (!isName) break;
        name = read as string;
        code = text.charCodeAt(at);
        while (code <= SPACE || code === COLON) code = text.charCodeAt(++at);
      }
      const isOpened = code === OPEN_ARRAY || code === OPEN_OBJECT;
      if (isOpened) {
        at++;
        read = code === OPEN_ARRAY ? [] : {};
      } else if (code !== QUOTE) {
        const from = at;
        let integer = 0;
        for (; code >= ZERO && code <= NINE; code = text.charCodeAt(++at)) integer = integer * 10 + code - ZERO;
        read = integer;
        if (at - from > 15 || at === from || code === 46 || code === 69 || code === 101) {
          while (code > SPACE && code !== COMMA && code !== CLOSE_ARRAY && code !== CLOSE_OBJECT)
            code = text.charCodeAt(++at);
          code = text.charCodeAt(from);
          read = code === N ? null : code === T ? true : code === F ? false : Number(text.slice(from, at));
        }
      }
      if (array) array.push(read);
      else if (name === '__proto__')
        Object.defineProperty(object, name, { value: read, writable: true, enumerable: true, configurable: true });
      else object![name] = read;
      if (isOpened) {
        arrays.push(array);
        objects.push(object);
        array = code === OPEN_ARRAY ? (read as unknown[]) : undefined;
        object = code === OPEN_OBJECT ? (read as Record<string, unknown>) : undefined;
      }
    }
  }

  /** The string between two quotes. */
  function unescaped(from: number, to: number): string {
    if (to - from > SHORT) return JSON.parse(text.slice(from - 1, to + 1)) as string;
    let string = '';
    let after = from;
    for (let i = text.indexOf('\\', from); i >= 0 && i < to; i = text.indexOf('\\', after)) {
      string += text.slice(after, i);
      const kind = text.charAt(i + 1);
      after = i + (kind === 'u' ? 6 : 2);
      string +=
        kind === 'u'
          ? String.fromCharCode(Number.parseInt(text.slice(i + 2, after), 16))
          : ({ b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }[kind] ?? kind);
    }
    return string + text.slice(after, to);
  }
}
