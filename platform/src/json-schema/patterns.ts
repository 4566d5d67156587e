import type { Format } from 'ajv';
import { fullFormats, type FormatName } from 'ajv-formats/dist/formats.js';
import { RE2JS } from 're2js';
import { spend } from './budget.ts';

const MAX_LENGTH = 2_000;
/** Size of a compiled pattern, in instructions. */
const MAX_PROGRAM = 1_000;
const MAX_PROGRAM_TOTAL = 10_000;
const MAX_PATTERNS = 200;
/** Uses of \p and \P: each adds a table of many ranges. */
const MAX_CLASSES = 50;
/** A pattern without choices (one-pass in RE2's terms) costs at most as much as one of this size. */
const ONE_PASS_SIZE = 6;

export interface Pattern {
  test(text: string): boolean;
}
/** Compiles a pattern. @throws Error that says why the pattern is not acceptable */
export type Patterns = (source: string) => Pattern;

/**
 * Compiles the patterns of one schema, with limits for all of them together. RE2 matches in time linear in the text;
 * it has no look-around and no back-references.
 */
export function patternsOfSchema(): Patterns {
  const compiledPatterns = new Map<string, Pattern>();
  let total = 0;
  let classes = 0;
  return (source) => {
    const present = compiledPatterns.get(source);
    if (present) return present;
    if (source.length > MAX_LENGTH) throw new Error(`the pattern is longer than ${MAX_LENGTH} characters`);
    if (compiledPatterns.size === MAX_PATTERNS) throw new Error(`the schema has more than ${MAX_PATTERNS} patterns`);
    classes += source.split(/\\p/i).length - 1;
    if (classes > MAX_CLASSES) throw new Error(`the patterns have more than ${MAX_CLASSES} unicode classes`);
    const compiled = compile(source);
    const size = compiled.programSize();
    total += size;
    if (size > MAX_PROGRAM || total > MAX_PROGRAM_TOTAL) throw new Error('the patterns repeat too much');
    const states = compiled.re2Input.onepass === null ? size : Math.min(size, ONE_PASS_SIZE);
    const pattern = {
      test(text: string) {
        spend(4 + (text.length * states) / 4);
        return compiled.matcher(text).find();
      },
      // ajv identifies a pattern by this text.
      toString: () => source,
    };
    compiledPatterns.set(source, pattern);
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

/** The formats of ajv-formats. Each check spends from the budget, so that many checks of a long text are stopped. */
export const formats: Record<string, Format> = Object.fromEntries(
  (Object.keys(fullFormats) as FormatName[]).map((name) => [name, withCost(name, fullFormats[name])]),
);

function withCost(name: FormatName, format: Format): Format {
  if (typeof format === 'object' && !(format instanceof RegExp) && format.type === 'number') return format;
  const check = typeof format === 'object' && 'validate' in format ? format.validate : format;
  if (check === true || typeof check === 'string') return true;
  const test = check instanceof RegExp ? (text: string) => check.test(text) : (check as (text: string) => boolean);
  return (text: string) => {
    spend(name === 'regex' ? 1 + text.length : 1 + text.length / 8);
    return test(text);
  };
}
