/** A check of a value against a schema needs more work than one request may cost. */
export class OverBudgetError extends Error {
  override readonly name = 'OverBudgetError';
}

// Module variables, because the generated code of a validator cannot be passed an argument of ours. One of each is
// enough, because validation is synchronous: there is never more than one check at a time.
let unitsLeft = 0;
/** What the running check has found out about large parts of the value, which many subschemas may ask for. */
const known = new Map<object, Map<string, unknown>>();

/**
 * Runs `check`, which may `spend` this many units (0.05 to 0.3 µs each, ADR 17).
 * @throws OverBudgetError when it spends more
 */
export function withBudget<T>(units: number, check: () => T): T {
  unitsLeft = units;
  try {
    return check();
  } finally {
    known.clear();
  }
}

/** Takes units from the budget of the running check. @throws OverBudgetError when it is used up */
export function spend(units: number): void {
  unitsLeft -= units;
  if (unitsLeft < 0) throw new OverBudgetError();
}

/**
 * The result of `find` for this part of the value, which the running check finds out, and so pays for, only once if
 * the result is `large`; a small one is sooner found again than looked up.
 */
export function onceIfLarge<P extends object, R>(
  part: P,
  name: string,
  find: (part: P) => R,
  large: (result: R) => boolean,
): R {
  const facts = known.size === 0 ? undefined : known.get(part);
  if (facts?.has(name)) return facts.get(name) as R;
  const result = find(part);
  if (large(result)) {
    if (facts) facts.set(name, result);
    else known.set(part, new Map([[name, result]]));
  }
  return result;
}
