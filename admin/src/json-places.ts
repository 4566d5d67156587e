import { printParseErrorCode, visit } from 'jsonc-parser';
import { pointerTo } from 'platform/json/pointer.ts';

/** Where things are in JSON text. Lines count from 1. */
export interface JsonPlaces {
  /** The line of the member at this JSON pointer, or of the nearest one around it. */
  lineOf(pointer: string): number;
  /** The first fault of the syntax. */
  fault?: { line: number; what: string };
}

const MAX_DEPTH = 64;

/** Ends a visit, which otherwise goes on behind a fault, and as deep as the text goes. */
class Ended extends Error {}

/** Finds the places as far as the text is JSON; of a name that stands twice, the last. */
export function placesOf(text: string): JsonPlaces {
  const lines = new Map([['', 1]]);
  let fault: JsonPlaces['fault'];
  const pointerOf = (path: readonly (string | number)[]): string => path.map(pointerTo).join('');
  const element = (line: number, path: readonly (string | number)[]): void => {
    const pointer = pointerOf(path);
    if (!lines.has(pointer)) lines.set(pointer, line + 1);
    if (path.length > MAX_DEPTH) throw new Ended();
  };
  try {
    visit(
      text,
      {
        onObjectProperty: (name, _at, _length, line, _column, path) =>
          void lines.set(pointerOf([...path(), name]), line + 1),
        onObjectBegin: (_at, _length, line, _column, path) => element(line, path()),
        onArrayBegin: (_at, _length, line, _column, path) => element(line, path()),
        onLiteralValue: (_value, _at, _length, line, _column, path) => element(line, path()),
        onError(code, _at, _length, line) {
          fault = { line: line + 1, what: inWords(printParseErrorCode(code)) };
          throw new Ended();
        },
      },
      { disallowComments: true },
    );
  } catch (error) {
    if (!(error instanceof Ended)) throw error;
  }
  return {
    lineOf(pointer) {
      let near = pointer;
      while (!lines.has(near)) near = near.slice(0, Math.max(0, near.lastIndexOf('/')));
      return lines.get(near)!;
    },
    fault,
  };
}

/** "CommaExpected" -> "comma expected". */
const inWords = (code: string): string => code.replace(/(?<!^)([A-Z])/g, ' $1').toLowerCase();
