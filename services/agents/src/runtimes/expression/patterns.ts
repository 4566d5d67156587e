import type { RE2JS } from 're2js';

export interface Patterns {
  /** The members of RegExp that JSONata uses, on RE2. */
  LinearRegExp: new (pattern: RegExp) => Pick<RegExp, 'exec' | 'lastIndex'>;
  /** Of one pattern. */
  maxCharacters: number;
  /** Calls `fail` for a pattern that RE2 cannot match or that is too large. */
  compile(pattern: RegExp): void;
  /** Forgets all compiled patterns. */
  forget(): void;
}
/** Of `makePatterns` with its charactersInRanges. */
export type MakePatterns = (given: Omit<Parameters<typeof makePatterns>[0], 'charactersInRanges'>) => Patterns;

/**
 * Regular expressions that take time linear in the text. They have no look-around and no back-references. Compiled in a
 * realm, so it refers to nothing outside of itself.
 * @param given.charactersInRanges that of platform's pattern-cost.ts
 * @param given.onMatch called before each match
 * @param given.fail throws an error with the message, which says to the author of an agent what is wrong
 */
export function makePatterns({
  loadRe2,
  charactersInRanges,
  onMatch,
  fail,
}: {
  loadRe2(): typeof RE2JS;
  charactersInRanges(pattern: string): number;
  onMatch(): void;
  fail(message: string): never;
}): Patterns {
  const MAX_PATTERN_CHARACTERS = 4_000;
  /** Characters of a text times instructions of a pattern: about a second of RE2 in its slowest case. */
  const MAX_MATCH_SIZE = 2e7;
  const MAX_COMPILED = 100;
  /** Characters that the ranges of patterns with the flag i name: RE2 looks up the other case of each, 65 ns. */
  const MAX_FOLDED = 100_000;

  let re2: typeof RE2JS | undefined;
  let folded = 0;
  const compiled = new Map<string, RE2JS>();

  function compile({ source, flags }: RegExp): RE2JS {
    if (source.length > MAX_PATTERN_CHARACTERS)
      fail(`A regular expression has at most ${MAX_PATTERN_CHARACTERS} characters`);
    const key = `${flags}/${source}`;
    let pattern = compiled.get(key);
    if (!pattern) {
      re2 ??= loadRe2();
      if (flags.includes('i')) folded += charactersInRanges(source);
      if (folded > MAX_FOLDED)
        fail(`The ranges of regular expressions with the flag i name more than ${MAX_FOLDED} characters together`);
      try {
        pattern = re2.compile(
          re2.translateRegExp(source),
          (flags.includes('i') ? re2.CASE_INSENSITIVE : 0) | (flags.includes('m') ? re2.MULTILINE : 0),
        );
      } catch {
        return fail(
          'A regular expression is too large, or cannot be matched in linear time (no look-around, no back-references)',
        );
      }
      if (compiled.size === MAX_COMPILED) compiled.clear();
      compiled.set(key, pattern);
    }
    return pattern;
  }

  class LinearRegExp {
    readonly #pattern: RE2JS;
    lastIndex = 0;
    constructor(pattern: RegExp) {
      this.#pattern = compile(pattern);
    }

    exec(text: unknown): RegExpExecArray | null {
      if (typeof text !== 'string') return fail('A regular expression matches only strings');
      onMatch();
      if ((text.length - this.lastIndex) * this.#pattern.programSize() > MAX_MATCH_SIZE)
        fail('A text is too long for the size of the regular expression');
      const matcher = this.#pattern.matcher(text);
      if (!matcher.find(this.lastIndex)) {
        this.lastIndex = 0;
        return null;
      }
      this.lastIndex = matcher.end();
      const groups = Array.from({ length: matcher.groupCount() + 1 }, (_, i) => matcher.group(i) ?? undefined) as [
        string,
        ...string[],
      ];
      return Object.assign(groups, { index: matcher.start(), input: text });
    }
  }

  function forget(): void {
    compiled.clear();
    folded = 0;
  }

  return { maxCharacters: MAX_PATTERN_CHARACTERS, LinearRegExp, compile, forget };
}
