/** Limits how many places one organization takes: fewer than are still free. So a single one gets at most half. */
export interface Shares {
  /** Whether a place is left for the organization. */
  mayTake(organizationId: string): boolean;
  take(organizationId: string): void;
  giveBack(organizationId: string): void;
}

/** ("Dynamic threshold", Choudhury and Hahne 1998.) */
export function makeShares(places: number): Shares {
  const taken = new Map<string, number>();
  let free = places;
  const add = (organizationId: string, more: number): void => {
    free -= more;
    const sum = (taken.get(organizationId) ?? 0) + more;
    if (sum === 0) taken.delete(organizationId);
    else taken.set(organizationId, sum);
  };
  return {
    mayTake: (organizationId) => (taken.get(organizationId) ?? 0) < free,
    take: (organizationId) => add(organizationId, 1),
    giveBack: (organizationId) => add(organizationId, -1),
  };
}
