/** A check of a value against a schema needs more work than one request may cost. */
export class OverBudgetError extends Error {
  override readonly name = 'OverBudgetError';
}

// A module variable, because the generated code of a validator cannot be passed an argument of ours. One is enough,
// because validation is synchronous: there is never more than one check at a time.
let unitsLeft = 0;

/**
 * Runs `check`, which may `spend` this many units (0.05 to 0.3 µs each, ADR 17).
 * @throws OverBudgetError when it spends more
 */
export function withBudget<T>(units: number, check: () => T): T {
  unitsLeft = units;
  return check();
}

/** Takes units from the budget of the running check. @throws OverBudgetError when it is used up */
export function spend(units: number): void {
  unitsLeft -= units;
  if (unitsLeft < 0) throw new OverBudgetError();
}
