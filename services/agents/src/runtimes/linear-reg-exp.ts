import { RE2JS } from 're2js';

/** The part of RegExp that JSONata uses, on RE2: linear in the text, so no pattern can hang a runner. */
export class LinearRegExp {
  lastIndex = 0;
  readonly #pattern: RE2JS;

  /** @throws Error when the pattern needs back-tracking (look-around, back-references) */
  constructor({ source, flags }: RegExp) {
    const ignoreCase = flags.includes('i') ? RE2JS.CASE_INSENSITIVE : 0;
    const multiline = flags.includes('m') ? RE2JS.MULTILINE : 0;
    try {
      this.#pattern = RE2JS.compile(RE2JS.translateRegExp(source), ignoreCase | multiline);
    } catch (cause) {
      throw new Error(`The pattern /${source}/ cannot be matched in linear time (no look-around, no back-references)`, { cause });
    }
  }

  exec(text: string): { index: number; [group: number]: string | undefined; length: number } | null {
    const matcher = this.#pattern.matcher(text);
    if (!matcher.find(this.lastIndex)) return null;
    const groups = Array.from({ length: matcher.groupCount() + 1 }, (_, i) => matcher.group(i) ?? undefined);
    this.lastIndex = matcher.end() === matcher.start() ? matcher.end() + 1 : matcher.end();
    return Object.assign(groups, { index: matcher.start() });
  }
}
