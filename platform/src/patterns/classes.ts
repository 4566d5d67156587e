import type { AST } from '@eslint-community/regexpp';
import { createRequire } from 'node:module';
import type * as re2js from 're2js';

/** First and last code points, in ascending order. */
export type Ranges = readonly (readonly [first: number, last: number])[];

const LAST = 0x10ffff;
export const LINE_ENDS: Ranges = [
  [0x0a, 0x0a],
  [0x0d, 0x0d],
  [0x2028, 0x2029],
];
/** ECMA-262, WhiteSpace and LineTerminator. RE2 knows the ASCII ones only. */
export const SPACE: Ranges = [
  [0x09, 0x0d],
  [0x20, 0x20],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
];

const complementOf = (ranges: Ranges): Ranges =>
  [...ranges, [LAST + 1, LAST + 1] as const]
    .map(([first], i): [number, number] => [i === 0 ? 0 : ranges[i - 1]![1] + 1, first - 1])
    .filter(([first, last]) => first <= last);

/** In ascending order, none of which touches another. */
export function mergedRanges(ranges: Ranges): Ranges {
  const merged: [number, number][] = [];
  for (const [first, last] of ranges.toSorted(([one], [other]) => one - other)) {
    const before = merged.at(-1);
    if (before && first <= before[1] + 1) before[1] = Math.max(before[1], last);
    else merged.push([first, last]);
  }
  return merged;
}

const IN_RE2 = { digit: ['\\d', '\\D'], word: ['\\w', '\\W'] } as const;

/** One of these sets in the brackets of a class of RE2. */
export function setInClass(set: AST.EscapeCharacterSet | AST.UnicodePropertyCharacterSet): string {
  if (set.kind === 'property') return propertyInClass(set);
  if (set.kind !== 'space') return IN_RE2[set.kind][set.negate ? 1 : 0];
  return inClass(set.negate ? complementOf(SPACE) : SPACE);
}

/** Ranges as they stand in the brackets of a class of RE2. */
export const inClass = (ranges: Ranges): string =>
  ranges.map(([first, last]) => characterInClass(first) + (first < last ? `-${characterInClass(last)}` : '')).join('');

export const characterInClass = (codePoint: number): string =>
  /[\da-z]/i.test(String.fromCodePoint(codePoint)) && codePoint < 0x80
    ? String.fromCodePoint(codePoint)
    : `\\x{${codePoint.toString(16)}}`;

/** For each property of ECMA-262 that was asked for, of which there are some 500: whether RE2 knows it. */
const known = new Map<string, boolean>();
/** For each that it does not know: its characters in the brackets of a class. */
const tables = new Map<string, string>();

const inRe2 = ({ key, value, negate }: AST.UnicodePropertyCharacterSet): string =>
  `\\${negate ? 'P' : 'p'}{${CATEGORIES.get(value ?? key) ?? value ?? key}}`;
const inEcmaScript = ({ key, value, negate }: AST.UnicodePropertyCharacterSet): string =>
  `\\${negate ? 'P' : 'p'}{${value === null ? key : `${key}=${value}`}}`;

/** Whether RE2 knows the property. If it does not, the class has a table of all characters that have it. */
export function isOfRe2(set: AST.UnicodePropertyCharacterSet): boolean {
  const name = inEcmaScript(set);
  const answer = known.get(name) ?? (!/^(?:scx|Script_Extensions)$/.test(set.key) && compiles(inRe2(set)));
  known.set(name, answer);
  return answer;
}

function propertyInClass(set: AST.UnicodePropertyCharacterSet): string {
  if (isOfRe2(set)) return inRe2(set);
  const name = inEcmaScript(set);
  const table = tables.get(name) ?? inClass(rangesOfProperty(name));
  tables.set(name, table);
  return table;
}

/** Loads RE2 when it is asked: few patterns need it here, and a runner of expressions has its own in each realm. */
function compiles(source: string): boolean {
  try {
    (createRequire(import.meta.url)('re2js') as typeof re2js).RE2JS.compile(source);
    return true;
  } catch {
    return false;
  }
}

/** ECMA-262, table of values of General_Category: RE2 has the short names only. */
const CATEGORIES = new Map(
  (
    'Letter=L Cased_Letter=LC Uppercase_Letter=Lu Lowercase_Letter=Ll Titlecase_Letter=Lt Modifier_Letter=Lm ' +
    'Other_Letter=Lo Mark=M Combining_Mark=M Nonspacing_Mark=Mn Spacing_Mark=Mc Enclosing_Mark=Me Number=N ' +
    'Decimal_Number=Nd digit=Nd Letter_Number=Nl Other_Number=No Symbol=S Math_Symbol=Sm Currency_Symbol=Sc ' +
    'Modifier_Symbol=Sk Other_Symbol=So Punctuation=P punct=P Connector_Punctuation=Pc Dash_Punctuation=Pd ' +
    'Open_Punctuation=Ps Close_Punctuation=Pe Initial_Punctuation=Pi Final_Punctuation=Pf Other_Punctuation=Po ' +
    'Separator=Z Space_Separator=Zs Line_Separator=Zl Paragraph_Separator=Zp Other=C Control=Cc cntrl=Cc Format=Cf ' +
    'Surrogate=Cs Private_Use=Co Unassigned=Cn'
  )
    .split(' ')
    .map((pair) => pair.split('=') as [string, string]),
);

/** Planes of which all characters but the last two are alike. */
const isUniform = (plane: number): boolean => plane >= 4 && plane !== 14;

/** The characters that V8 finds to have a property: some 10 ms. */
function rangesOfProperty(escape: string): Ranges {
  const property = new RegExp(escape, 'u');
  const ranges: [number, number][] = [];
  for (let plane = 0; plane <= 16; plane++) {
    for (let low = 0; low <= 0xffff; low++) {
      const codePoint = plane * 0x10000 + low;
      if (!property.test(String.fromCodePoint(codePoint))) continue;
      const last = isUniform(plane) && low < 0xfffe ? codePoint + 0xfffd - low : codePoint;
      const before = ranges.at(-1);
      if (before?.[1] === codePoint - 1) before[1] = last;
      else ranges.push([codePoint, last]);
      low += last - codePoint;
    }
  }
  return ranges;
}
