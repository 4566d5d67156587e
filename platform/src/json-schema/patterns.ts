import { RE2JS } from 're2js';
import { spend } from './budget.ts';
import { re2Of } from './ecmascript-pattern.ts';
import { bytesOf, charactersInRanges, expandedSizeOf, isCheapAsOnePass, unitsPerCharacter } from './pattern-cost.ts';

const MAX_LENGTH = 2_000;
/** Size of a compiled pattern, in instructions. */
const MAX_PROGRAM = 1_000;
const MAX_PROGRAM_TOTAL = 10_000;
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
 * in time linear in the text; it has no look-around and no back-references.
 */
export function patternsOfSchema(): Patterns {
  const patterns = new Map<string, Pattern>();
  let expanded = 0;
  let instructions = 0;
  let classes = 0;
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
      const translated = re2Of(source);
      if (translated.includes('(?i')) {
        ignoringCase += source.length;
        if (ignoringCase > MAX_IGNORING_CASE)
          throw new Error(`the patterns with (?i) have more than ${MAX_IGNORING_CASE} characters together`);
        folded += charactersInRanges(translated);
        if (folded > MAX_FOLDED)
          throw new Error(`the ranges of the patterns with (?i) name more than ${MAX_FOLDED} characters together`);
      }
      expanded += expandedSizeOf(translated);
      if (expanded > MAX_EXPANDED) throw new Error('the patterns repeat too much');
      // After a group, "^" is not the first instruction, and RE2 does not try whether the pattern is one-pass. What is
      // sound in a group and after one is sound.
      const grouped = compileRe2(`(${translated})`);
      const size = grouped.programSize();
      instructions += size;
      if (size > MAX_PROGRAM || instructions > MAX_PROGRAM_TOTAL) throw new Error('the patterns repeat too much');
      const compiled = compileRe2(isCheapAsOnePass(grouped.re2Input) ? translated : `()${translated}`);
      // The search for literals before a match is not linear.
      compiled.re2Input.prefilter = null;
      bytes += bytesOf(compiled.re2Input);
      const perCharacter = unitsPerCharacter(compiled.re2Input);
      const pattern = {
        test(text: string) {
          spend(10 + (text.length + 1) * perCharacter);
          return compiled.matcher(text).find();
        },
        // ajv identifies a pattern by this text.
        toString: () => source,
      };
      patterns.set(source, pattern);
      return pattern;
    },
  };
}

function compileRe2(source: string): RE2JS {
  try {
    return RE2JS.compile(RE2JS.translateRegExp(source));
  } catch (error) {
    throw new Error(
      'the pattern is not a regular expression that can be checked in linear time (no look-around, no back-references)',
      { cause: error },
    );
  }
}
