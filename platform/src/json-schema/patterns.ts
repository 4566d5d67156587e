import { RE2JS } from 're2js';
import { spend } from './budget.ts';
import { MAX_TABLES, testInRe2, tooManyTables } from '../patterns/in-re2.ts';
import {
  bytesOf,
  charactersInRanges,
  isCheapAsOnePass,
  isSmallAsOnePass,
  mayBeOnePass,
  unitsPerCharacter,
} from './pattern-cost.ts';

const MAX_LENGTH = 2_000;
/** Instructions of all compiled patterns. */
const MAX_INSTRUCTIONS = 10_000;
/** Size of all patterns with their repetitions written out: RE2 does so before the size of the program is known. */
const MAX_EXPANDED = 30_000;
const MAX_PATTERNS = 200;
/** Uses of \p and \P: each adds a table of many ranges. */
const MAX_CLASSES = 50;
/** Uses of \s and \S: RE2 takes 25 µs to parse what each becomes. */
const MAX_SPACES = 1_000;
/** Characters of all patterns with "(?i)": a class in them costs RE2 up to 0.1 ms. */
const MAX_IGNORING_CASE = 500;
/** Characters that the ranges of these name: RE2 looks up the other case of each, 65 ns. */
const MAX_FOLDED = 10_000;
/** Units for each character of a text that is turned around. */
const TURNING = 0.5;

interface Pattern {
  test(text: string): boolean;
}
/** The patterns of one schema. */
export interface Patterns {
  /** @throws Error that says why the pattern is not acceptable */
  compile(source: string): Pattern;
  /** Bytes of heap that the patterns compiled so far keep. */
  readonly bytes: number;
}

/**
 * Compiles the patterns of one schema, as ECMA-262 understands them, with limits for all of them together. RE2 matches
 * in time linear in the text.
 */
export function patternsOfSchema(): Patterns {
  const patterns = new Map<string, Pattern>();
  let expanded = 0;
  let instructions = 0;
  let classes = 0;
  let tables = 0;
  let spaces = 0;
  let ignoringCase = 0;
  let folded = 0;
  let bytes = 0;
  return {
    get bytes() {
      return bytes;
    },
    compile(source) {
      const present = patterns.get(source);
      if (present) return present;
      if (source.length > MAX_LENGTH) throw new Error(`the pattern is longer than ${MAX_LENGTH} characters`);
      if (patterns.size === MAX_PATTERNS) throw new Error(`the schema has more than ${MAX_PATTERNS} patterns`);
      classes += source.split(/\\p/i).length - 1;
      if (classes > MAX_CLASSES) throw new Error(`the patterns have more than ${MAX_CLASSES} unicode classes`);
      spaces += source.split(/\\s/i).length - 1;
      if (spaces > MAX_SPACES) throw new Error(`the patterns have more than ${MAX_SPACES} uses of \\s and \\S`);
      const { re2, turned, size, ignoresCase, ...found } = testInRe2(source);
      tables += found.tables;
      if (tables > MAX_TABLES) throw tooManyTables();
      if (ignoresCase) {
        ignoringCase += source.length;
        if (ignoringCase > MAX_IGNORING_CASE)
          throw new Error(`the patterns with (?i) have more than ${MAX_IGNORING_CASE} characters together`);
        folded += charactersInRanges(re2);
        if (folded > MAX_FOLDED)
          throw new Error(`the ranges of the patterns with (?i) name more than ${MAX_FOLDED} characters together`);
      }
      expanded += size;
      if (expanded > MAX_EXPANDED) throw tooLarge(expanded, MAX_EXPANDED);
      const compiled = withBoundedCost(re2, size);
      instructions += compiled.programSize();
      if (instructions > MAX_INSTRUCTIONS) throw tooLarge(instructions, MAX_INSTRUCTIONS);
      // The search for literals before a match is not linear.
      compiled.re2Input.prefilter = null;
      bytes += bytesOf(compiled.re2Input);
      const perCharacter = unitsPerCharacter(compiled.re2Input) + (turned ? TURNING : 0);
      // Without look-behind, a mere test keeps states for what it has read, up to 8 MB.
      const looksBehind = compiled.re2Input.prog.numLb > 0;
      const pattern = {
        test(text: string) {
          spend(10 + (text.length + 1) * perCharacter);
          const ordered = turned ? inReverse(text) : text;
          return looksBehind ? compiled.test(ordered) : compiled.matcher(ordered).find();
        },
        // ajv identifies a pattern by this text.
        toString: () => source,
      };
      patterns.set(source, pattern);
      return pattern;
    },
  };
}

/** RE2 finds out whether the pattern is one-pass only where that is known to be cheap. */
function withBoundedCost(re2: string, size: number): RE2JS {
  if (isSmallAsOnePass(size, re2.length)) return compileRe2(re2);
  // After a group, "^" is not the first instruction, and RE2 does not try. What is sound in a group is sound.
  const grouped = compileRe2(`(${re2})`);
  return mayBeOnePass(grouped.re2Input) && isCheapAsOnePass(grouped.re2Input) ? compileRe2(re2) : grouped;
}

/** By whole characters. */
const inReverse = (text: string): string => [...text].reverse().join('');

const tooLarge = (size: number, most: number): Error =>
  new Error(
    `the patterns repeat too much: with their repetitions written out they have ${size} instructions, and ${most} at most`,
  );

function compileRe2(source: string): RE2JS {
  try {
    return RE2JS.compile(source, RE2JS.LOOKBEHINDS);
  } catch (error) {
    throw new Error('the pattern is not a regular expression that can be checked in linear time', { cause: error });
  }
}
