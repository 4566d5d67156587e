import { mergedRanges, type Ranges } from './classes.ts';

/** ECMA-262, Canonicalize without the flag u. */
function canonical(character: string): string {
  const upper = character.toUpperCase();
  return upper.length > 1 || (character > '\x7f' && upper <= '\x7f') ? character : upper;
}

/** For each character that others are like where case is ignored: all of them. */
let groups: Map<number, number[]> | undefined;

function groupsOfCase(): Map<number, number[]> {
  const alike = new Map<string, number[]>();
  for (let codePoint = 0; codePoint <= 0xffff; codePoint++) {
    const one = canonical(String.fromCharCode(codePoint));
    const others = alike.get(one);
    if (others) others.push(codePoint);
    else alike.set(one, [codePoint]);
  }
  const several = [...alike.values()].filter(({ length }) => length > 1);
  return new Map(several.flatMap((group) => group.map((codePoint) => [codePoint, group])));
}

/** To no ASCII letter is one like that is none. */
function withOtherAsciiCases(ranges: Ranges): Ranges {
  const between = (from: number, to: number, distance: number): Ranges =>
    ranges
      .map(([first, last]) => [Math.max(first, from) + distance, Math.min(last, to) + distance] as const)
      .filter(([first, last]) => first <= last);
  return mergedRanges([...ranges, ...between(0x41, 0x5a, 0x20), ...between(0x61, 0x7a, -0x20)]);
}

/** The characters and all that differ from them in case only, as ECMA-262 sees it without the flag u. */
export function withOtherCases(ranges: Ranges): Ranges {
  if (ranges.every(([, last]) => last < 0x80)) return withOtherAsciiCases(ranges);
  groups ??= groupsOfCase();
  const others = new Set<number>();
  for (const [first, last] of ranges)
    if (last - first < groups.size) {
      for (let codePoint = first; codePoint <= last; codePoint++)
        for (const other of groups.get(codePoint) ?? []) others.add(other);
    } else
      for (const [codePoint, group] of groups)
        if (first <= codePoint && codePoint <= last) for (const other of group) others.add(other);
  return mergedRanges([...ranges, ...[...others].map((codePoint) => [codePoint, codePoint] as const)]);
}
