import type { Format } from 'ajv';
import { fullFormats, type FormatName } from 'ajv-formats/dist/formats.js';
import { RE2JS } from 're2js';
import { spend } from './budget.ts';

const MAX_LENGTH = 2_000;
const MAX_PROGRAM = 1_000;
const MAX_PROGRAM_TOTAL = 10_000;
const MAX_PATTERNS = 200;
/** Uses of \p and \P: each brings a table of many ranges. */
const MAX_CLASSES = 50;
/** States that a program without choices is charged for, however long it is. */
const ONE_PASS = 6;

export interface Pattern {
  test(text: string): boolean;
}
/** Gives the compiled form of a pattern; throws an Error whose message is the reason for a refusal. */
export type Patterns = (source: string) => Pattern;

/** The patterns of one schema: RE2, so linear in the text (no look-around, no back-references), and bounded in all. */
export function patternsOfSchema(): Patterns {
  const known = new Map<string, Pattern>();
  let total = 0;
  let classes = 0;
  return (source) => {
    const before = known.get(source);
    if (before) return before;
    if (source.length > MAX_LENGTH) throw new Error(`the pattern is longer than ${MAX_LENGTH} characters`);
    if (known.size === MAX_PATTERNS) throw new Error(`the schema has more than ${MAX_PATTERNS} patterns`);
    classes += source.split(/\\p/i).length - 1;
    if (classes > MAX_CLASSES) throw new Error(`the patterns have more than ${MAX_CLASSES} unicode classes`);
    const compiled = compile(source);
    const size = compiled.programSize();
    total += size;
    if (size > MAX_PROGRAM || total > MAX_PROGRAM_TOTAL) throw new Error('the patterns repeat too much');
    const states = compiled.re2Input.onepass === null ? size : Math.min(size, ONE_PASS);
    const pattern = {
      test(text: string) {
        spend(4 + (text.length * states) / 4);
        return compiled.matcher(text).find();
      },
      // ajv tells patterns apart by their text.
      toString: () => source,
    };
    known.set(source, pattern);
    return pattern;
  };
}

function compile(source: string): RE2JS {
  try {
    return RE2JS.compile(RE2JS.translateRegExp(source));
  } catch (error) {
    throw new Error(
      'the pattern is not a regular expression that can be checked in linear time (no look-around, no back-references)',
      { cause: error },
    );
  }
}

/** The formats of ajv-formats; what a check of a text costs is spent, so that no number of checks adds up. */
export const formats: Record<string, Format> = Object.fromEntries(
  (Object.keys(fullFormats) as FormatName[]).map((name) => [name, metered(name, fullFormats[name])]),
);

function metered(name: FormatName, format: Format): Format {
  if (typeof format === 'object' && !(format instanceof RegExp) && format.type === 'number') return format;
  const check = typeof format === 'object' && 'validate' in format ? format.validate : format;
  if (check === true || typeof check === 'string') return true;
  const test = check instanceof RegExp ? (text: string) => check.test(text) : (check as (text: string) => boolean);
  return (text: string) => {
    spend(name === 'regex' ? 1 + text.length : 1 + text.length / 8);
    return test(text);
  };
}
