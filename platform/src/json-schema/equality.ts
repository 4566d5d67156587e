import { canonicalJson } from '../core/canonical-json.ts';
import { onceIfLarge, spend } from './budget.ts';

/** Members or characters from which on a result is remembered for the rest of the check. */
const LARGE = 64;

/** The units to list `count` names, or to look at each member: those of large objects are kept in a hash table. */
export const unitsOfMembers = (count: number): number => count * Math.max(1, Math.log2(1 + count) / 6);

function countMembers(object: object): number {
  const { length } = Object.keys(object);
  if (length >= LARGE) spend(unitsOfMembers(length));
  return length;
}

/** The number of members of an object. V8 needs some milliseconds to list 30,000 names, so it is counted once. */
export const memberCountOf = (object: object): number =>
  onceIfLarge(object, 'count', countMembers, (count) => count >= LARGE);

const canonicalTextOf = (value: object): string =>
  onceIfLarge(
    value,
    'text',
    (part) => canonicalJson(part, spend),
    (text) => text.length >= LARGE,
  );

/**
 * Tests equality to one of the values. ajv compares one by one, and calls members of a value that are named like
 * methods.
 */
export function equalsOneOf(allowed: readonly unknown[]): (data: unknown) => boolean {
  const scalars = new Set(allowed.filter((value) => typeof value !== 'object' || value === null));
  const longest = Math.max(0, ...allowed.map((value) => (typeof value === 'string' ? value.length : 0)));
  const parts = allowed.filter((value) => typeof value === 'object' && value !== null);
  const lengths = new Set(parts.filter((value) => Array.isArray(value)).map((list) => list.length));
  const counts = new Set(parts.filter((value) => !Array.isArray(value)).map((value) => Object.keys(value).length));
  const texts = new Set(parts.map((part) => canonicalJson(part)));
  return (data) => {
    if (typeof data === 'string') spend(Math.min(data.length, longest) / 256);
    if (typeof data !== 'object' || data === null) return scalars.has(data);
    const mayBeEqual = Array.isArray(data)
      ? lengths.has(data.length)
      : counts.size > 0 && counts.has(memberCountOf(data));
    return mayBeEqual && texts.has(canonicalTextOf(data));
  };
}

/**
 * Compares items in linear time; ajv compares each with each. The sign keeps V8 from hashing the text of an integer by
 * its value, so that nobody can choose integers whose hashes collide.
 */
function findAllDiffer(items: readonly unknown[]): boolean {
  const seen = new Set<string>();
  for (const [count, item] of items.entries()) {
    spend(2);
    seen.add(`=${canonicalJson(item, spend)}`);
    if (seen.size === count) return false;
  }
  return true;
}
export const allDiffer = (items: readonly unknown[]): boolean =>
  onceIfLarge(items, 'allDiffer', findAllDiffer, () => items.length >= LARGE);
