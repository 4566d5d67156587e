import type { Subschema } from './subschema.ts';

/** Names of members. */
interface Names {
  /** Of `properties`. */
  listed: number;
  /** How often all members of a value may be among them, because of `patternProperties`. */
  ofValue: number;
}
export const NO_NAMES: Names = { listed: 0, ofValue: 0 };

/** Only the check finds out which members these evaluate; of other keywords the compiler knows it. */
const DYNAMIC = ['anyOf', 'oneOf', 'if', 'dependentSchemas', 'dependencies', 'patternProperties'];
/** These evaluate all members, for which no names are kept. */
const CLOSING = ['additionalProperties', 'unevaluatedProperties'];

/**
 * Where something is said of unevaluated members, ajv collects the names of evaluated ones, and each subschema takes
 * over those of the ones that are applied to the same value. Where the check has to do this, it takes time for each.
 * @param inPlace the subschemas that are applied to the same value as this one; following them never loops
 * @returns counts the names that the check of a subschema takes over
 */
export function mergedNames(
  subs: Iterable<Subschema>,
  inPlace: (sub: Subschema) => Subschema[],
): (sub: Subschema) => Names {
  const different = new Set([...subs].flatMap(propertiesOf)).size;
  const collected = new Map<Subschema, Names>();
  const dynamic = new Map<Subschema, boolean>();

  function isDynamic(sub: Subschema): boolean {
    let is = dynamic.get(sub);
    if (is === undefined) {
      is = hasOneOf(sub, DYNAMIC) || isRecursive(sub) || inPlace(sub).some((one) => !isClosed(one) && isDynamic(one));
      dynamic.set(sub, is);
    }
    return is;
  }

  function collectedBy(sub: Subschema): Names {
    if (isClosed(sub)) return NO_NAMES;
    let names = collected.get(sub);
    if (names === undefined) {
      const { listed, ofValue } = sumOf(inPlace(sub).map(collectedBy));
      names = {
        listed: Math.min(propertiesOf(sub).length + listed, different),
        ofValue: Math.min(1, ofValue + (sub.children.has('patternProperties') ? 1 : 0)),
      };
      collected.set(sub, names);
    }
    return names;
  }

  return (sub) => (isDynamic(sub) ? sumOf(inPlace(sub).map(collectedBy)) : NO_NAMES);
}

const hasOneOf = ({ children }: Subschema, keywords: readonly string[]): boolean =>
  keywords.some((keyword) => children.has(keyword));
const isClosed = (sub: Subschema): boolean => hasOneOf(sub, CLOSING);

const propertiesOf = ({ children }: Subschema): string[] =>
  children.get('properties')?.subs.map(([name]) => name) ?? [];

const sumOf = (all: readonly Names[]): Names =>
  all.reduce((sum, { listed, ofValue }) => ({ listed: sum.listed + listed, ofValue: sum.ofValue + ofValue }), NO_NAMES);

/** A reference to a subschema that leads back to it: the compiler does not know yet what that one evaluates. */
function isRecursive(sub: Subschema): boolean {
  if (sub.ref === undefined) return false;
  const reached = new Set([sub.ref]);
  for (const one of reached) {
    if (one === sub) return true;
    if (one.ref) reached.add(one.ref);
    for (const { target, subs } of one.children.values())
      if (target !== 'none') for (const [, part] of subs) reached.add(part);
  }
  return false;
}
