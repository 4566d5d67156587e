import { visitRegExpAST, type AST } from '@eslint-community/regexpp';
import { withOtherCases } from './case.ts';
import {
  characterInClass,
  inClass,
  isOfRe2,
  LINE_ENDS,
  mergedRanges,
  setInClass,
  SPACE,
  type Ranges,
} from './classes.ts';
import { expandedSizeOf, MAX_COUNT, repeated, type Piece } from './repeats.ts';
import { parsePattern } from './syntax.ts';

/** Of a class, or a class of its own. */
type ClassMember = AST.Character | AST.CharacterClassRange | AST.EscapeCharacterSet | AST.UnicodePropertyCharacterSet;

/** A pattern in the syntax of RE2. */
export interface Translation {
  re2: string;
  /** Whether it is to be tested by the text with its characters in reverse order. */
  turned: boolean;
  /** About the number of its instructions. */
  size: number;
  ignoresCase: boolean;
  /** Uses of properties that RE2 does not know, each of which is a long table. */
  tables: number;
}

/** Of one pattern, as `expandedSizeOf` counts it: what is larger is not written out. */
const MAX_SIZE = 30_000;

/** In one pattern or schema. */
export const MAX_TABLES = 4;
export const tooManyTables = (): Error =>
  new Error(`the patterns use properties of characters that RE2 does not know more than ${MAX_TABLES} times`);

interface Dialect {
  backwards: boolean;
  /** Whether it matters which match is found, and what its groups hold, not only whether there is one. */
  forMatches: boolean;
  /** As without the flag u: two characters are alike if they are in upper case. */
  ignoreCase: boolean;
  multiline: boolean;
}

/**
 * Translates a pattern, which is a regular expression of ECMA-262 with the flag u, so that RE2 gives the same verdict
 * on every text. RE2 has look-behind in linear time. A look-ahead is one in the reversed pattern, which tests the
 * reversed text.
 * @throws Error that says what is wrong with the pattern
 */
export function testInRe2(source: string): Translation {
  const pattern = parsePattern(source);
  const found = whatIsIn(pattern);
  if (found.lookAhead && found.lookBehind)
    throw new Error('a pattern that looks both ahead and behind cannot be checked in linear time');
  const backwards = found.lookAhead;
  const size = checkedSizeOf(pattern);
  return {
    re2: writerOf({ backwards, forMatches: false, ignoreCase: false, multiline: false })(pattern),
    turned: backwards,
    size,
    ignoresCase: found.ignoresCase,
    tables: found.tables,
  };
}

/**
 * Translates a regular expression of ECMA-262 without the flag u, so that RE2 finds the same matches by characters,
 * not by halves of them. `\p{…}` and `\u{…}` mean what they do with the flag u. RE2 must take all line ends for `^` and
 * `$`.
 * @throws Error that says what is wrong with the pattern
 */
export function matchInRe2(source: string, flags: string): string {
  const pattern = parsePattern(source, true);
  const found = whatIsIn(pattern);
  if (found.lookAhead || found.lookBehind)
    throw new Error('look-ahead and look-behind cannot be matched in linear time');
  checkedSizeOf(pattern);
  const dialect = { backwards: false, forMatches: true, ignoreCase: flags.includes('i') };
  return writerOf({ ...dialect, multiline: flags.includes('m') })(pattern);
}

function checkedSizeOf(pattern: AST.Pattern): number {
  const size = expandedSizeOf(pattern);
  if (size <= MAX_SIZE) return size;
  throw new Error(
    `the pattern repeats too much: with its repetitions written out it has ${size} instructions, and ${MAX_SIZE} at most`,
  );
}

function whatIsIn(pattern: AST.Pattern) {
  const found = { lookAhead: false, lookBehind: false, ignoresCase: false, tables: 0 };
  visitRegExpAST(pattern, {
    onAssertionEnter({ kind }) {
      if (kind === 'lookahead') found.lookAhead = true;
      if (kind === 'lookbehind') found.lookBehind = true;
    },
    onModifiersEnter({ add }) {
      if (add.ignoreCase) found.ignoresCase = true;
    },
    onCharacterSetEnter(set) {
      if (set.kind === 'property' && !isOfRe2(set) && ++found.tables > MAX_TABLES) throw tooManyTables();
    },
    onBackreferenceEnter({ raw }) {
      throw new Error(`"${raw}" in the pattern refers back to a group, which cannot be checked in linear time`);
    },
    onQuantifierEnter({ min, max, element, raw }) {
      if ((max === Infinity ? min : max) > MAX_COUNT)
        throw new Error(`"${raw.slice(element.raw.length)}" in the pattern repeats more than ${MAX_COUNT} times`);
    },
  });
  return found;
}

function writerOf({ backwards, forMatches, ignoreCase, multiline }: Dialect): (pattern: AST.Pattern) => string {
  let modes = { ignoreCase, multiline, dotAll: false };

  const write = (alternatives: AST.Alternative[]): { text: string; counts: number } => {
    const written = alternatives.map(({ elements }) =>
      (backwards ? elements.toReversed() : elements).map(writeElement),
    );
    return {
      text: written.map((pieces) => pieces.map(({ text }) => text).join('')).join('|'),
      counts: Math.max(1, ...written.flat().map(({ counts }) => counts)),
    };
  };
  const single = (text: string): Piece => ({ text, counts: 1 });

  function writeElement(node: AST.Element): Piece {
    switch (node.type) {
      case 'Group':
        return writeGroup(node);
      case 'CapturingGroup': {
        const { text, counts } = write(node.alternatives);
        return { text: `${forMatches ? '(' : '(?:'}${text})`, counts };
      }
      case 'Quantifier': {
        const isSingle = /^Character/.test(node.element.type);
        return repeated(writeElement(node.element), node, isSingle || !forMatches);
      }
      case 'Assertion':
        return writeAssertion(node);
      case 'Character':
        return single(modes.ignoreCase ? classOf(false, [node]) : characterInClass(node.value));
      case 'CharacterClass':
        return single(classOf(node.negate, node.elements as ClassMember[]));
      case 'CharacterSet':
        if (node.kind === 'any') return single(modes.dotAll ? ANYTHING : `[^${inClass(LINE_ENDS)}]`);
        // Negated brackets name fewer characters than the complement of white space does.
        if (node.kind === 'space' && node.negate) return single(`[^${inClass(SPACE)}]`);
        return single(classOf(false, [node]));
      default:
        throw new Error(`"${node.raw}" in the pattern cannot be checked in linear time`);
    }
  }

  function writeGroup({ modifiers, alternatives }: AST.Group): Piece {
    const { add, remove } = modifiers ?? {};
    const before = modes;
    const changed = (mode: keyof typeof modes): boolean => (before[mode] || add?.[mode] === true) && !remove?.[mode];
    modes = { ...before, dotAll: changed('dotAll') };
    // With the flag u, RE2 finds characters that differ in case as ECMA-262 does.
    if (forMatches) modes = { ...modes, ignoreCase: changed('ignoreCase'), multiline: changed('multiline') };
    else if (add?.multiline) throw new Error('"(?m:" in the pattern cannot be checked in linear time');
    const { text, counts } = write(alternatives);
    modes = before;
    const mode = forMatches ? '' : add?.ignoreCase ? 'i' : remove?.ignoreCase ? '-i' : '';
    return { text: `(?${mode}:${text})`, counts };
  }

  function writeAssertion(node: AST.Assertion): Piece {
    switch (node.kind) {
      case 'start':
      case 'end': {
        const sign = (node.kind === 'start') === backwards ? '$' : '^';
        return single(modes.multiline ? `(?m:${sign})` : sign);
      }
      case 'word':
        return single(node.negate ? '\\B' : '\\b');
      default: {
        const { text, counts } = write(node.alternatives);
        return { text: `(?<${node.negate ? '!' : '='}${text})`, counts };
      }
    }
  }

  function classOf(negate: boolean, elements: ClassMember[]): string {
    if (elements.length === 0) return negate ? ANYTHING : NOTHING;
    const members = modes.ignoreCase ? [inEitherCase(elements)] : [...new Set(elements.map(memberOf))];
    const [member] = members;
    if (members.length === 1 && !negate && /^\\[a-zA-Z](?:\{[^}]*\})?$/.test(member!)) return member!;
    return `[${negate ? '^' : ''}${members.join('')}]`;
  }

  return (pattern) => write(pattern.alternatives).text;
}

const ANYTHING = '(?s:.)';
const NOTHING = '(?:\\b\\B)';

function memberOf(element: ClassMember): string {
  switch (element.type) {
    case 'Character':
      return characterInClass(element.value);
    case 'CharacterClassRange':
      return inClass([[element.min.value, element.max.value]]);
    default:
      return setInClass(element);
  }
}

/**
 * As ECMA-262 finds characters that differ in case without the flag u, which is not what RE2 does. What an escape
 * stands for has all cases of its letters.
 */
function inEitherCase(elements: ClassMember[]): string {
  let escapes = '';
  const ranges = elements.flatMap((element): Ranges => {
    if (element.type === 'Character') return [[element.value, element.value]];
    if (element.type === 'CharacterClassRange') return [[element.min.value, element.max.value]];
    escapes += setInClass(element);
    return [];
  });
  return inClass(withOtherCases(mergedRanges(ranges))) + escapes;
}
