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
export type MakePatterns = typeof makePatterns;

/**
 * Regular expressions that take time linear in the text. They have no look-around and no back-references. Compiled in a
 * realm, so it refers to nothing outside of itself.
 * @param given.inRe2 that of the host
 * @param given.onMatch called before each match
 * @param given.fail throws an error with the message, which says to the author of an agent what is wrong
 */
export function makePatterns({
  loadRe2,
  inRe2,
  onMatch,
  fail,
}: {
  loadRe2(): typeof RE2JS;
  inRe2(source: string, flags: string): string;
  onMatch(): void;
  fail(message: string): never;
}): Patterns {
  const MAX_PATTERN_CHARACTERS = 4_000;
  /** Characters of a text times instructions of a pattern: about a second of RE2 in its slowest case. */
  const MAX_MATCH_SIZE = 2e7;
  const MAX_COMPILED = 100;

  const CANNOT_BE_MATCHED =
    'A regular expression is too large, or cannot be matched in linear time (no look-around, no back-references)';

  let re2: typeof RE2JS | undefined;
  const compiled = new Map<string, RE2JS>();

  function compile({ source, flags }: RegExp): RE2JS {
    if (source.length > MAX_PATTERN_CHARACTERS)
      fail(`A regular expression has at most ${MAX_PATTERN_CHARACTERS} characters`);
    const key = `${flags}/${source}`;
    let pattern = compiled.get(key);
    if (!pattern) {
      re2 ??= loadRe2();
      const translated = inRe2(source, flags);
      if (!translated.startsWith('=')) return fail(`${CANNOT_BE_MATCHED}: ${translated}`);
      try {
        pattern = re2.compile(translated.slice(1));
      } catch {
        return fail(CANNOT_BE_MATCHED);
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
  }

  return { maxCharacters: MAX_PATTERN_CHARACTERS, LinearRegExp, compile, forget };
}
