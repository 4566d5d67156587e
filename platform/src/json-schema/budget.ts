/** A value and a schema that together ask for more work than one request may cost. */
export class OverBudgetError extends Error {
  override readonly name = 'OverBudgetError';
}

// Validation is synchronous, so one counter serves all of them; what runs under it is generated code, which can be handed no argument of ours.
let left = 0;

/** Runs `check` with so many units (at worst about 0.1 µs each); throws OverBudgetError when they are used up. */
export function withBudget<T>(units: number, check: () => T): T {
  left = units;
  return check();
}

export function spend(units: number): void {
  left -= units;
  if (left < 0) throw new OverBudgetError();
}
