import { RegExpParser, type AST } from '@eslint-community/regexpp';

const ESCAPE =
  /\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u[\da-fA-F]{4}|u\{[\da-fA-F]+\}|x[\da-fA-F]{2}|c[a-zA-Z]|[pP]\{[^}]*\}|0(?!\d)|[dDwWsSbBnrtvf]|[^\da-zA-Z])/uy;
/** Of those that only Annex B of ECMA-262 has, which reads them without the flag u. */
const ANNEX_B_ESCAPE = /\\(?:[0-3][0-7]{0,2}|[4-7][0-7]?|[a-zA-Z])/uy;
const GROUPS = /\((?:(?!\?)|\?<(?![=!]))/g;
/** With the flag u, only these may follow a backslash and mean themselves. */
const MEANS_ITSELF = /[$()*+./?[\\\]^{|}]/;
const GROUP = /\((?:\?(?:[:=!]|<[=!]|[ims]*(?:-[ims]*)?:|i\)|<[\p{L}_$][\p{L}\p{N}_$]*>)|(?!\?))/uy;
const QUANTIFIER = /[*+?]|\{\d+(?:,\d*)?\}/y;
const IN_CLASS = /[^\]\\]/uy;

/**
 * Reads a regular expression of ECMA-262 with the flag u. What is none with that flag is read as without it where only
 * one thing can be meant, such as `\-`, `\_`, `{`, `]` and `[\w-.]`. Beyond ECMA-262, "(?i)" ignores case from there
 * on, and `\p{Greek}` is `\p{Script=Greek}`.
 * @param annexB whether any letter may be escaped, which is usual only in expressions
 * @throws Error that says what is wrong with the pattern
 */
export function parsePattern(source: string, annexB = false): AST.Pattern {
  try {
    return parse(source);
  } catch (error) {
    if (error instanceof RangeError)
      throw new Error('the groups of the pattern are nested too deeply', { cause: error });
    const withFlagU = spelledForFlagU(source, annexB);
    try {
      return parse(withFlagU);
    } catch (cause) {
      const reason = (cause as Error).message.slice(`Invalid regular expression: /${withFlagU}/u: `.length);
      throw new Error(`the pattern is no regular expression: ${reason.toLowerCase()}`, { cause });
    }
  }
}

const parser = new RegExpParser({ ecmaVersion: 2025 });
const parse = (source: string): AST.Pattern => parser.parsePattern(source, 0, source.length, { unicode: true });

/** @throws Error that names an escape or a group that has no meaning */
function spelledForFlagU(source: string, annexB: boolean): string {
  let out = '';
  let at = 0;
  /** Of the groups around: whether "(?i)" was in them. A group of its own then goes on in each alternative. */
  const ignoring = [false];

  function take(pattern: RegExp): string | undefined {
    pattern.lastIndex = at;
    const text = pattern.exec(source)?.[0];
    at += text?.length ?? 0;
    return text;
  }

  function takeEscape(): string {
    const digits = /^\\([1-9]\d*)/.exec(source.slice(at, at + 5))?.[1];
    const refersBack = digits !== undefined && Number(digits) <= source.split(GROUPS).length - 1;
    const escape = take(ESCAPE) ?? (annexB && !refersBack ? take(ANNEX_B_ESCAPE) : undefined);
    if (escape === undefined)
      throw new Error(`"${source.slice(at, at + 2)}" in the pattern is no escape that can be checked`);
    const second = escape[1]!;
    if (/\d/.test(second)) return `\\x${Number.parseInt(escape.slice(1), 8).toString(16).padStart(2, '0')}`;
    if (escape === '\\c') return '\\\\c';
    // A hyphen that is escaped is no sign of a range.
    if (second === '-') return '\\x2d';
    if (/^\\[pP]\{/.test(escape)) return propertyForFlagU(escape);
    return MEANS_ITSELF.test(second) || (/[a-z]/i.test(second) && !isAnnexB(escape)) ? escape : escape.slice(1);
  }

  /** The class in brackets, in which each hyphen is escaped that is not between the ends of a range. */
  function takeClass(): string {
    let inside = source[at++]!;
    if (source[at] === '^') inside += source[at++]!;
    /** The last member, if a range may begin with it. */
    let last: string | undefined;
    while (at < source.length && source[at] !== ']') {
      const member = takeMember();
      if (member !== '-' || last === undefined || at >= source.length || source[at] === ']') {
        last = member === '-' ? '\\-' : member;
        inside += last;
      } else {
        const end = takeMember();
        inside += (isSet(last) || isSet(end) ? '\\-' : '-') + (end === '-' ? '\\-' : end);
        last = undefined;
      }
    }
    return inside + (source[at++] ?? '');
  }
  const takeMember = (): string => (source[at] === '\\' ? takeEscape() : take(IN_CLASS)!);

  function takeGroup(): string {
    const group = take(GROUP);
    if (group === undefined)
      throw new Error(
        `"${source.slice(at, at + 3)}" in the pattern begins no group that can be checked in linear time: only ` +
          '(…), (?:…), (?<name>…), (?i:…), (?=…), (?!…), (?<=…) and (?<!…) can',
      );
    if (group !== '(?i)') {
      ignoring.push(false);
      return group;
    }
    const again = ignoring.at(-1)!;
    ignoring[ignoring.length - 1] = true;
    return again ? '' : '(?i:';
  }

  function takeEnd(end: string): string {
    const ignores = ignoring.at(-1)!;
    if (end === '|') return ignores ? ')|(?i:' : '|';
    if (ignoring.length > 1) ignoring.pop();
    return ignores ? '))' : ')';
  }

  while (at < source.length) {
    const character = source[at]!;
    const quantifier = take(QUANTIFIER);
    if (quantifier !== undefined) out += quantifier;
    else if (character === '[') out += takeClass();
    else if (character === '(') out += takeGroup();
    else if ('|)'.includes(character)) out += takeEnd(source[at++]!);
    else if ('{}]'.includes(character)) out += `\\${source[at++]!}`;
    else {
      const token = character === '\\' ? takeEscape() : source[at++]!;
      QUANTIFIER.lastIndex = at;
      // RE2 takes a place as often as one likes.
      out += /^(?:[$^]|\\b)$/i.test(token) && QUANTIFIER.test(source) ? `(?:${token})` : token;
    }
  }
  return ignoring[0] ? `${out})` : out;
}

const isSet = (member: string): boolean => /^\\[dDpPsSwW]/.test(member);
const isAnnexB = (escape: string): boolean => {
  ESCAPE.lastIndex = 0;
  return !ESCAPE.test(escape);
};

/** RE2 knows scripts by their names alone, and "^" for "not". */
function propertyForFlagU(escape: string): string {
  const [, kind, not, name] = /^\\(.)\{(\^?)(.*)\}$/.exec(escape) as unknown as [string, string, string, string];
  const property = (value: string): string => `\\${not ? (kind === 'p' ? 'P' : 'p') : kind}{${value}}`;
  return [property(name), property(`Script=${name}`)].find(isRegExp) ?? escape;
}

function isRegExp(source: string): boolean {
  try {
    parse(source);
    return true;
  } catch {
    return false;
  }
}
