import type { RE2JS } from 're2js';

type Re2 = RE2JS['re2Input'];
/** An instruction of a compiled pattern, of which re2js has no type. */
interface Instruction {
  op: number;
  out: number;
  arg: number;
  /** First and last characters of ranges, among which it looks for a character by halving. */
  runes: ArrayLike<number>;
}
/** Values of `op` in re2js. What reads a character is RUNE or higher. */
const [ALT, ALT_MATCH, FAIL, MATCH, RUNE] = [1, 2, 5, 6, 8] as const;

/** The instructions that may follow, and read the same character. */
function next({ op, out, arg }: Instruction): number[] {
  if (op >= RUNE || op === FAIL || op === MATCH) return [];
  return op === ALT || op === ALT_MATCH ? [out, arg] : [out];
}

/**
 * Units that a character of a text costs at most, as measured. RE2 may follow every way through a pattern at once, and
 * then executes all instructions for each character. In a one-pass pattern the next character always decides the way,
 * and it executes those from one reading instruction to the next.
 */
export function unitsPerCharacter(re2: Re2): number {
  if (re2.onepass === null) return 1 + instructions(re2).reduce((sum, inst) => sum + unitsOf(inst), 0);
  const inst = re2.onepass.inst as Instruction[];
  const longest = new Map<number, number>();
  const longestFrom = (at: number): number => {
    const known = longest.get(at);
    if (known !== undefined) return known;
    longest.set(at, 0);
    const { op } = inst[at]!;
    const units =
      op === FAIL || op === MATCH ? 0 : unitsOf(inst[at]!) + Math.max(0, ...next(inst[at]!).map(longestFrom));
    longest.set(at, units);
    return units;
  };
  return 0.4 + Math.max(...inst.map((_, at) => longestFrom(at)));
}

const instructions = (re2: Re2): Instruction[] => re2.prog.inst;
const rangesOf = ({ runes }: Instruction): number => runes.length / 2;
const unitsOf = (inst: Instruction): number => 0.25 + Math.log2(1 + rangesOf(inst)) / 32;

/** Steps of about 10 ns: so much may RE2 spend on finding out whether a pattern is one-pass. */
const ONE_PASS_STEPS = 20_000;

/**
 * Whether RE2 finds out quickly if a pattern is one-pass, that is whether the next character always decides the way. To
 * do so, from each place in the pattern at which it reads a character it merges at each choice all ranges that may come
 * next, which for many choices in a row is cubic.
 * @param re2 the pattern in a group
 */
export function isCheapAsOnePass(re2: Re2): boolean {
  const inst = instructions(re2);
  const places = new Set([re2.prog.start as number, ...inst.flatMap(({ op, out }) => (op >= RUNE ? [out] : []))]);
  let steps = 0;
  for (const place of places) {
    const reached = new Set([place]);
    let ranges = 0;
    for (const at of reached) {
      ranges += 1 + rangesOf(inst[at]!);
      for (const following of next(inst[at]!)) reached.add(following);
      if (steps + reached.size * ranges > ONE_PASS_STEPS) return false;
    }
    steps += reached.size * ranges;
  }
  return true;
}

const TOKEN = /\\[xpP]\{[^}]*\}|\\[^]|\[(?:\\[^]|[^\\\]])*\]|\((?:\?(?:i?:|i\)|<[^>]*>))?|\{(\d+)(?:,(\d*))?\}|[^]/gu;

/**
 * About how many instructions a pattern has when its repetitions are written out, nested ones too. Nothing counts as
 * something here, because RE2 writes it out as well.
 * @param pattern in the syntax of RE2
 */
export function expandedSizeOf(pattern: string): number {
  const outer: number[] = [];
  let size = 0;
  let last = 0;
  for (const [token, least, most] of pattern.matchAll(TOKEN)) {
    if (least !== undefined) {
      const more = last * (Math.max(Number(least), Number(most ?? 0), 1) - 1);
      size += more;
      last += more;
    } else if (token === '(?i)') last = 0;
    else if (token.startsWith('(')) {
      outer.push(size);
      size = 0;
    } else if (token === ')') {
      last = 2 + Math.max(1, size);
      size = (outer.pop() ?? 0) + last;
    } else if ('*+?'.includes(token)) {
      size++;
      last++;
    } else {
      size++;
      last = token === '|' ? 0 : 1;
    }
  }
  return outer.reduce((sum, each) => sum + each, size);
}

/** Bytes of heap that a compiled pattern keeps, as measured: for each instruction, and for tables that they share. */
export function bytesOf({ prog, onepass }: Re2): number {
  const instructions: (Instruction & { next: ArrayLike<number> | null })[] = [...prog.inst, ...(onepass?.inst ?? [])];
  const tables = new Set(instructions.flatMap(({ runes, next }) => (next === null ? [runes] : [runes, next])));
  return [...tables].reduce((sum, table) => sum + 4 * table.length, 10_240 + 400 * instructions.length);
}

/**
 * How many characters the ranges in the text of a pattern name, counting what only looks like a range, too. The realms
 * of agents compile the text of this function, so it refers to nothing outside of itself.
 */
export function charactersInRanges(pattern: string): number {
  const character = /\\u\{([\da-f]+)\}|\\u([\da-f]{4})|\\x\{([\da-f]+)\}|\\x([\da-f]{2})|\\.|[^]/giu;
  const codePointOf = ([text, ...digits]: RegExpExecArray): number => {
    const hexadecimal = digits.find((one) => one !== undefined);
    return hexadecimal === undefined ? [...text].at(-1)!.codePointAt(0)! : Number.parseInt(hexadecimal, 16);
  };
  const characters = [...pattern.matchAll(character)];
  return characters.reduce((sum, [text], at) => {
    const [first, last] = [characters[at - 1], characters[at + 1]];
    if (text !== '-' || !first || !last) return sum;
    return sum + Math.max(0, codePointOf(last) - codePointOf(first) + 1);
  }, 0);
}
