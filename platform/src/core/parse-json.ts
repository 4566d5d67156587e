/**
 * JSON.parse for text whose names come from outside. V8 takes a name that is spelled with an escape for another one if
 * an earlier text of this process had that: after `{"a":1,"\\":2}`, also one of another organization, `{"a":1,"\"":2}`
 * has a member named backslash (https://github.com/nodejs/node/issues/63785). Text with such names is read without its
 * help. Realms of expressions compile the text of this function, so it refers to nothing outside of itself.
 * @throws SyntaxError
 */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  return text.includes('\\') && hasEscapedName() ? readAgain() : value;

  function hasEscapedName(): boolean {
    const strings = /"[^"\\]*(?:(\\).[^"\\]*)*"[ \t\n\r]*(:)?/g;
    for (const [, escape, colon] of text.matchAll(strings))
      if (escape !== undefined && colon !== undefined) return true;
    return false;
  }

  function readAgain(): unknown {
    const tokens = text.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^"{}[\],: \t\n\r]+/g);
    const next = (): string => tokens.next().value![0];
    const read = (token: string): unknown => {
      if (token === '[') {
        const elements: unknown[] = [];
        for (let element = next(); element !== ']'; element = next()) if (element !== ',') elements.push(read(element));
        return elements;
      }
      if (token === '{') {
        const members: [string, unknown][] = [];
        for (let name = next(); name !== '}'; name = next()) {
          if (name === ',') continue;
          next(); // the colon
          members.push([JSON.parse(name) as string, read(next())]);
        }
        return Object.fromEntries(members);
      }
      return JSON.parse(token);
    };
    return read(next());
  }
}
