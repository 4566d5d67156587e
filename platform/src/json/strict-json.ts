import { parseJson } from '../core/parse-json.ts';
import { invalid, ServiceError } from '../core/errors.ts';
import { copyEscape, type StringCopy } from './escape.ts';
import { endOfNumber, numberViolation } from './number.ts';
import { pointerTo } from './pointer.ts';
import { repeatedName } from './repeated-name.ts';

const MAX_DEPTH = 64;
/** Of a member: "":0, */
const MIN_MEMBER_BYTES = 5;
/** A double keeps the value of every shorter number, but not of each number of this length, such as 1e17. */
const MIN_DOUBTFUL_BYTES = 4;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = 0x20;
const OPEN_BRACE = 0x7b;
const OPEN_BRACKET = 0x5b;
const LITERALS = new Map(['true', 'false', 'null'].map((text) => [text.charCodeAt(0), Buffer.from(text)]));
const PROTO = Buffer.from('"__proto__');

/** What may come next. The order counts: a value may come in the first two states, a string in the first four. */
const VALUE = 0;
const VALUE_OR_END = 1;
const NAME = 2;
const NAME_OR_END = 3;
const COLON = 4;
const COMMA_OR_END = 5;

/**
 * Checks JSON text in one pass, in time linear in its length, without making its values (ADR 19). Rejects what would
 * not keep its value until a client reads it back: duplicate names, `__proto__`, more than 64 levels, NUL, lone
 * surrogates, and numbers that a double cannot represent.
 * @param input valid UTF-8
 * @param schemas names of members of the whole object that are JSON Schemas: a limit in them may be any integer, which
 * no value that is checked can reach
 * @returns the text in UTF-8 without white space, and with the escapes that JSON.stringify would write
 * @throws ServiceError for the first fault: MALFORMED_JSON for the syntax, else INVALID_REQUEST with the JSON pointer.
 * A duplicate name is found at the end of its object
 */
export function strictJson(input: Buffer, schemas: readonly string[] = []): Buffer<ArrayBuffer> {
  const schemaNames = schemas.map((name) => Buffer.from(JSON.stringify(name).slice(0, -1)));
  const output = Buffer.allocUnsafeSlow(input.length);
  const string: StringCopy = { input, output, at: 0, length: 0, violation: undefined };
  /** Begin and end in the output of the names that the open objects have so far. */
  const names = new Int32Array(2 * Math.ceil(input.length / MIN_MEMBER_BYTES) + 2);
  /** By level, from 1: where the names of the object begin in `names`; -1 for an array. */
  const firstNames = new Int32Array(MAX_DEPTH + 1);
  /** By level: where the current name begins in the output, or the current index. */
  const places = new Int32Array(MAX_DEPTH + 1);
  let [namesEnd, depth, next, at, length] = [0, 0, VALUE, 0, 0];
  let violation: string | undefined;
  let isInSchema = false;

  // A function for each kind of value would be easier to read, but the scan would take three times as long.
  scan: while (at < input.length) {
    const code = input[at]!;
    switch (code) {
      case SPACE:
      case 0x09:
      case 0x0a:
      case 0x0d:
        at++;
        continue;
      case QUOTE: {
        if (next > NAME_OR_END) break scan;
        const start = length;
        output[length++] = QUOTE;
        at++;
        for (let character = input[at]!; character !== QUOTE; character = input[at]!) {
          if (character === BACKSLASH) {
            string.at = at;
            string.length = length;
            if (!copyEscape(string)) break scan;
            at = string.at;
            length = string.length;
          } else {
            if (!(character >= SPACE)) break scan;
            output[length++] = character;
            at++;
          }
        }
        violation = string.violation;
        if (next <= VALUE_OR_END) next = COMMA_OR_END;
        else {
          next = COLON;
          places[depth] = start;
          names[namesEnd++] = start;
          names[namesEnd++] = length + 1;
          if (length - start === PROTO.length && PROTO.equals(output.subarray(start, length)))
            violation = 'The name __proto__ is not allowed';
          if (depth === 1) isInSchema = schemaNames.some((name) => name.equals(output.subarray(start, length)));
        }
        output[length++] = QUOTE;
        at++;
        if (violation !== undefined) break scan;
        continue;
      }
      case 0x2c: // comma
        if (next !== COMMA_OR_END || depth === 0) break scan;
        if (firstNames[depth]! >= 0) next = NAME;
        else {
          next = VALUE;
          places[depth]!++;
        }
        break;
      case 0x3a: // colon
        if (next !== COLON) break scan;
        next = VALUE;
        break;
      case OPEN_BRACE:
      case OPEN_BRACKET:
        if (next > VALUE_OR_END) break scan;
        if (depth === MAX_DEPTH) {
          violation = `The value is nested deeper than ${MAX_DEPTH} levels`;
          break scan;
        }
        depth++;
        firstNames[depth] = code === OPEN_BRACE ? namesEnd : -1;
        places[depth] = 0;
        next = code === OPEN_BRACE ? NAME_OR_END : VALUE_OR_END;
        break;
      case 0x5d: // closing bracket
        if ((next !== COMMA_OR_END && next !== VALUE_OR_END) || depth === 0 || firstNames[depth]! >= 0) break scan;
        depth--;
        next = COMMA_OR_END;
        break;
      case 0x7d: {
        // closing brace
        const first = firstNames[depth]!;
        if ((next !== COMMA_OR_END && next !== NAME_OR_END) || depth === 0 || first < 0) break scan;
        const repeated = repeatedName(output, names, first, namesEnd);
        if (repeated >= 0) {
          violation = 'The name appears twice in its object';
          places[depth] = names[repeated]!;
          break scan;
        }
        namesEnd = first;
        depth--;
        next = COMMA_OR_END;
        break;
      }
      case 0x74: // true, false, null
      case 0x66:
      case 0x6e: {
        if (next > VALUE_OR_END) break scan;
        for (const expected of LITERALS.get(code)!) {
          if (input[at] !== expected) break scan;
          output[length++] = expected;
          at++;
        }
        next = COMMA_OR_END;
        continue;
      }
      default: {
        if (next > VALUE_OR_END) break scan;
        const end = endOfNumber(input, at);
        if (end < 0) break scan;
        if (end - at >= MIN_DOUBTFUL_BYTES) violation = numberViolation(input, at, end, isInSchema);
        if (violation !== undefined) break scan;
        while (at < end) output[length++] = input[at++]!;
        next = COMMA_OR_END;
        continue;
      }
    }
    output[length++] = code;
    at++;
  }
  if (violation !== undefined) throw invalid(pathOf(output, depth, firstNames, places), violation);
  if (at < input.length || depth > 0 || next !== COMMA_OR_END) throw new ServiceError('MALFORMED_JSON');
  return output.subarray(0, length);
}

function pathOf(output: Buffer, depth: number, firstNames: Int32Array, places: Int32Array): string {
  let path = '';
  for (let level = 1; level <= depth; level++) {
    const place = places[level]!;
    path += pointerTo(firstNames[level] === -1 ? place : stringAt(output, place));
  }
  return path;
}

function stringAt(output: Buffer, start: number): string {
  let end = start + 1;
  while (output[end] !== QUOTE) end += output[end] === BACKSLASH ? 2 : 1;
  return parseJson(output.toString('utf8', start, end + 1)) as string;
}
