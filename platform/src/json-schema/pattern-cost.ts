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
/** Values of `op` in re2js. */
const [ALT, ALT_MATCH, EMPTY_WIDTH, FAIL, MATCH, RUNE, RUNE_ANY_NOT_NL] = [1, 2, 4, 5, 6, 8, 11] as const;
/** Of `arg` where `op` is EMPTY_WIDTH. */
const BEGIN_TEXT = 4;

const reads = ({ op }: Instruction): boolean => op >= RUNE && op <= RUNE_ANY_NOT_NL;

const isEnd = ({ op }: Instruction): boolean => op === FAIL || op === MATCH;
const hasChoice = ({ op }: Instruction): boolean => op === ALT || op === ALT_MATCH;

/** The instructions that may follow, and read the same character. */
function next(inst: Instruction): number[] {
  if (reads(inst) || isEnd(inst)) return [];
  return hasChoice(inst) ? [inst.out, inst.arg] : [inst.out];
}

/**
 * Units that a character of a text costs at most, as measured. RE2 may follow every way through a pattern at once, and
 * then executes all instructions that can be reached by as many characters. In a one-pass pattern the next character
 * always decides the way, and it executes those from one reading instruction to the next.
 */
export function unitsPerCharacter(re2: Re2): number {
  if (re2.onepass === null) return 1 + mostUnitsAtOnce(re2);
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

/** Steps for each instruction of a pattern, of about 50 ns: so much is spent on finding out what it costs. */
const STEPS = 50;

/**
 * The most that all instructions cost together that RE2 can reach by the same number of characters, whichever they are.
 * Where a match may begin anywhere, and without an answer within the steps, it is what all of them cost.
 */
function mostUnitsAtOnce({ prog, cond }: Re2): number {
  const inst = prog.inst as Instruction[];
  const all = inst.reduce((sum, each) => sum + unitsOf(each), 0);
  if ((cond & BEGIN_TEXT) === 0) return all;
  const seen = new Set<string>();
  const reachedAt = new Int32Array(inst.length).fill(-1);
  let open = [prog.start as number, ...(prog.lbStarts as number[])];
  let most = 0;
  for (let characters = 0, steps = STEPS * inst.length; steps > 0; characters++) {
    let units = 0;
    const reached: number[] = [];
    const after: number[] = [];
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      if (reachedAt[at] === characters) continue;
      reachedAt[at] = characters;
      reached.push(at);
      const one = inst[at]!;
      units += unitsOf(one);
      if (isEnd(one) || (isBegin(one) && characters > 0)) continue;
      const next = reads(one) ? after : open;
      next.push(one.out);
      if (hasChoice(one)) next.push(one.arg);
    }
    most = Math.max(most, units);
    if (most > all / 2) return all;
    const key = String.fromCharCode(...reached);
    if (seen.has(key)) return most;
    if (characters > 0) seen.add(key);
    steps -= reached.length;
    open = after;
  }
  return all;
}

const isBegin = ({ op, arg }: Instruction): boolean => op === EMPTY_WIDTH && (arg & BEGIN_TEXT) !== 0;

/** Whether RE2 tries if the pattern in a group is one-pass. */
export const mayBeOnePass = ({ prog, cond }: Re2): boolean =>
  (cond & BEGIN_TEXT) !== 0 && prog.numLb === 0 && prog.numInst() < MAX_ONE_PASS;
const MAX_ONE_PASS = 1_000;

/** Steps of about 10 ns: so much may RE2 spend on finding out whether a pattern is one-pass. */
const ONE_PASS_STEPS = 20_000;

/** Whether even a pattern with a choice at each place and a range in each of its characters is cheap in that. */
export const isSmallAsOnePass = (size: number, length: number): boolean =>
  size ** 2 * (size + length) <= ONE_PASS_STEPS;

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

/** Bytes of heap that a compiled pattern keeps, as measured: for each instruction, and for tables that they share. */
export function bytesOf({ prog, onepass }: Re2): number {
  const instructions: (Instruction & { next: ArrayLike<number> | null })[] = [...prog.inst, ...(onepass?.inst ?? [])];
  const tables = new Set(instructions.flatMap(({ runes, next }) => (next === null ? [runes] : [runes, next])));
  return [...tables].reduce((sum, table) => sum + 4 * table.length, 10_240 + 400 * instructions.length);
}

/**
 * How many characters the ranges in the text of a pattern name, counting what only looks like a range, too.
 * @param pattern in the syntax of RE2
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
