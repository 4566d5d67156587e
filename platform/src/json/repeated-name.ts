import { getRandomValues } from 'node:crypto';

/** Up to here, comparing each name with each other one is faster than hashing. */
const FEW = 8;

/**
 * Finds a name that an object has twice, in time linear in the names.
 * @param text where equal names are spelled alike
 * @param spans begin and end of each name in the text, quotes included
 * @param from index in `spans` of the object's first name, and `to` behind its last one
 * @returns index in `spans` of the first name that repeats an earlier one, or -1
 */
export function repeatedName(text: Uint8Array, spans: Int32Array, from: number, to: number): number {
  if (to - from > 2 * FEW) return repeatedOfMany(text, spans, from, to);
  for (let i = from + 2; i < to; i += 2)
    for (let earlier = from; earlier < i; earlier += 2) if (isSame(text, spans, earlier, i)) return i;
  return -1;
}

function isSame(text: Uint8Array, spans: Int32Array, a: number, b: number): boolean {
  const start = spans[b]!;
  const end = spans[b + 1]!;
  const distance = start - spans[a]!;
  if (spans[a + 1]! + distance !== end) return false;
  for (let at = start; at < end; at++) if (text[at] !== text[at - distance]) return false;
  return true;
}

/** Each slot of the hash table has an index and, in the bits above it, those of the hash; 0 is an empty slot. */
function repeatedOfMany(text: Uint8Array, spans: Int32Array, from: number, to: number): number {
  const mask = 2 ** Math.ceil(Math.log2(0.75 * (to - from))) - 1;
  const slots = new Int32Array(mask + 1);
  for (let i = from, number = 1; i < to; i += 2, number++) {
    const hash = keyedHash(text, spans[i]!, spans[i + 1]!);
    let slot = hash & mask;
    for (let known = slots[slot]!; known !== 0; known = slots[slot]!) {
      const mayBeSame = ((known ^ hash) & ~mask) === 0;
      if (mayBeSame && isSame(text, spans, from + 2 * ((known & mask) - 1), i)) return i;
      slot = (slot + 1) & mask;
    }
    slots[slot] = (hash & ~mask) | number;
  }
  return -1;
}

/** Without it, nobody can choose names that collide. */
const KEY = getRandomValues(new Int32Array(2));

/** HalfSipHash-1-3 of four bytes in each round (https://github.com/veorq/SipHash). */
function keyedHash(text: Uint8Array, start: number, end: number): number {
  let v0 = KEY[0]!;
  let v1 = KEY[1]!;
  let v2 = 0x6c796765 ^ v0;
  let v3 = 0x74656462 ^ v1;
  // three rounds without input finish the hash
  for (let at = start; at < end + 12; at += 4) {
    if (at >= end && at < end + 4) v2 ^= 0xff;
    const word = at + 3 < end ? wordAt(text, at) : at < end ? lastWord(text, at, end) : 0;
    v3 ^= word;
    v0 = (v0 + v1) | 0;
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
    v0 = (v0 << 16) | (v0 >>> 16);
    v2 = (v2 + v3) | 0;
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
    v0 = (v0 + v3) | 0;
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
    v2 = (v2 + v1) | 0;
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
    v2 = (v2 << 16) | (v2 >>> 16);
    v0 ^= word;
  }
  return v1 ^ v3;
}

const wordAt = (text: Uint8Array, at: number): number =>
  text[at]! | (text[at + 1]! << 8) | (text[at + 2]! << 16) | (text[at + 3]! << 24);

function lastWord(text: Uint8Array, at: number, end: number): number {
  let word = (end - at) << 24;
  for (let i = 0; at + i < end; i++) word |= text[at + i]! << (8 * i);
  return word;
}
