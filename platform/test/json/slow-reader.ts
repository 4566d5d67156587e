import { pointerTo } from '../../src/json/pointer.ts';

/** Why a text is rejected. */
export class Fault {
  readonly reason: 'MALFORMED_JSON' | 'INVALID_REQUEST';
  readonly path: string | undefined;
  constructor(reason: Fault['reason'], path?: string) {
    this.reason = reason;
    this.path = path;
  }
}

/**
 * What strictJson must do, written for clarity: reads one token after the other by regular expressions, and takes the
 * value of each from JSON.parse.
 * @returns the compact text, or the first fault
 */
export function slowStrictJson(text: string): string | Fault {
  let rest = text;
  const path: (string | number)[] = [];
  const take = (pattern: RegExp): string => {
    const [found] = pattern.exec(rest) ?? [];
    if (found === undefined) throw new Fault('MALFORMED_JSON');
    rest = rest.slice(found.length).replace(/^[ \t\n\r]+/, '');
    return found;
  };
  const reject = (): never => {
    throw new Fault('INVALID_REQUEST', path.map((step) => pointerTo(step)).join(''));
  };
  const readString = (isName: boolean): string => {
    const string = JSON.parse(take(/^"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"/)) as string;
    if (isName) path[path.length - 1] = string.toWellFormed();
    if (string.includes('\0') || !string.isWellFormed() || (isName && string === '__proto__')) reject();
    return string;
  };
  const readList = (open: string, close: string, readItem: (index: number) => string): string => {
    if (path.length === 64) reject();
    take(open === '{' ? /^\{/ : /^\[/);
    path.push(0);
    const items: string[] = [];
    while (!rest.startsWith(close)) {
      if (items.length > 0) take(/^,/);
      items.push(readItem(items.length));
    }
    return open + items.join(',') + close;
  };
  const end = (pattern: RegExp): void => {
    take(pattern);
    path.pop();
  };
  const readValue = (): string => {
    switch (rest[0]) {
      case '"':
        return JSON.stringify(readString(false));
      case '[': {
        const array = readList('[', ']', (index) => {
          path[path.length - 1] = index;
          return readValue();
        });
        end(/^\]/);
        return array;
      }
      case '{': {
        const names: string[] = [];
        const object = readList('{', '}', () => {
          const name = readString(true);
          names.push(name);
          take(/^:/);
          return `${JSON.stringify(name)}:${readValue()}`;
        });
        const repeated = names.find((name, index) => names.indexOf(name) < index);
        if (repeated !== undefined) {
          path[path.length - 1] = repeated;
          reject();
        }
        end(/^\}/);
        return object;
      }
      case 't':
      case 'f':
      case 'n':
        return take(/^(?:true|false|null)/);
      default: {
        const literal = take(/^-?(?:0|[1-9]\d*(?!\d))(?:\.\d+(?!\d)|(?!\.))(?:[eE][+-]?\d+(?!\d)|(?![eE]))/);
        const value = Math.abs(Number(literal));
        const isDigitsAlone = /^-?\d+$/.test(literal);
        if (value > Number.MAX_SAFE_INTEGER && (isDigitsAlone || value < 1e21 || value === Infinity)) reject();
        return literal;
      }
    }
  };
  try {
    take(/^[ \t\n\r]*/);
    const compact = readValue();
    take(/^$/);
    return compact;
  } catch (thrown) {
    if (thrown instanceof Fault) return thrown;
    throw thrown;
  }
}
