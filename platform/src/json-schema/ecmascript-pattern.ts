/** ECMA-262, WhiteSpace and LineTerminator: what \s matches, and its complement. RE2 knows the ASCII ones only. */
const SPACE = '\\t-\\r\\x20\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}';
const NO_SPACE =
  '\\x00-\\x08\\x0e-\\x1f\\x21-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}' +
  '\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{fefe}\\x{ff00}-\\x{10ffff}';
/** ECMA-262, table of values of General_Category: RE2 has the short names only. */
const CATEGORIES = new Map(
  (
    'Letter=L Cased_Letter=LC Uppercase_Letter=Lu Lowercase_Letter=Ll Titlecase_Letter=Lt Modifier_Letter=Lm ' +
    'Other_Letter=Lo Mark=M Combining_Mark=M Nonspacing_Mark=Mn Spacing_Mark=Mc Enclosing_Mark=Me Number=N ' +
    'Decimal_Number=Nd digit=Nd Letter_Number=Nl Other_Number=No Symbol=S Math_Symbol=Sm Currency_Symbol=Sc ' +
    'Modifier_Symbol=Sk Other_Symbol=So Punctuation=P punct=P Connector_Punctuation=Pc Dash_Punctuation=Pd ' +
    'Open_Punctuation=Ps Close_Punctuation=Pe Initial_Punctuation=Pi Final_Punctuation=Pf Other_Punctuation=Po ' +
    'Separator=Z Space_Separator=Zs Line_Separator=Zl Paragraph_Separator=Zp Other=C Control=Cc cntrl=Cc Format=Cf'
  )
    .split(' ')
    .map((pair) => pair.split('=') as [string, string]),
);
const ESCAPE =
  /\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u[0-9a-fA-F]{4}|u\{[0-9a-fA-F]+\}|x[0-9a-fA-F]{2}|c[a-zA-Z]|p\{[^}]*\}|P\{[^}]*\}|0(?!\d)|[dDwWsSbBnrtvf]|[^\da-zA-Z])/uy;
const GROUP = /\((?:\?(?::|i:|i\)|<[\p{L}_$][\p{L}\p{N}_$]*>)|(?!\?))/uy;

/**
 * Translates a pattern, which is a regular expression of ECMA-262 with the flag u, into the syntax of RE2. What both
 * write alike and understand differently is translated or refused. Beyond ECMA-262, "(?i)" ignores case from there on.
 * @throws Error that names an escape or a group that is not acceptable
 */
export function re2Of(source: string): string {
  let out = '';
  /** In a class, what it has of \s and \S: each is long in RE2, and once is enough. */
  let spaces: Set<string> | undefined;
  for (let at = 0; at < source.length;) {
    const character = source[at]!;
    if (character === '\\') {
      const escape = matchAt(ESCAPE, source, at);
      if (!escape) throw new Error(`${quoted(source, at, 2)} in the pattern is no escape that can be checked`);
      const [text] = escape;
      if (!spaces?.has(text)) out += translated(escape, spaces !== undefined);
      if (/s/i.test(text[1]!)) spaces?.add(text);
      at += text.length;
    } else if (character === '(' && !spaces) {
      const group = matchAt(GROUP, source, at);
      if (!group)
        throw new Error(
          `${quoted(source, at, 3)} in the pattern cannot be checked in linear time: only (…), (?:…) and (?<name>…) can`,
        );
      out += group[0];
      at += group[0].length;
    } else {
      if (spaces) out += character === '[' ? '\\[' : character;
      else out += character === '.' ? '[^\\n\\r\\x{2028}\\x{2029}]' : character;
      if (character === '[') spaces ??= new Set();
      else if (character === ']') spaces = undefined;
      at++;
    }
  }
  return out;
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

function translated([escape, high, low]: RegExpExecArray, inClass: boolean): string {
  if (high !== undefined && low !== undefined) {
    const pair = String.fromCharCode(Number.parseInt(high, 16), Number.parseInt(low, 16));
    return `\\x{${pair.codePointAt(0)!.toString(16)}}`;
  }
  switch (escape) {
    case '\\s':
      return inClass ? SPACE : `[${SPACE}]`;
    case '\\S':
      return inClass ? NO_SPACE : `[^${SPACE}]`;
    case '\\0':
      return '\\x00';
    case '\\b':
      return inClass ? '\\x08' : escape;
    default:
      return escape.replace(
        /^(\\[pP]\{)(?:(?:General_Category|gc|Script|sc)=)?(.*)\}$/,
        (_all, start: string, name: string) => `${start}${CATEGORIES.get(name) ?? name}}`,
      );
  }
}

const quoted = (source: string, at: number, length: number): string => `"${source.slice(at, at + length)}"`;
