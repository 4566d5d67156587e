import { invalid } from 'platform/errors.ts';
import data from './tiers.json' with { type: 'json' };

/** A licence tier: what it opens, and its caps by name (absent: no cap). */
export interface Tier {
  capabilities: readonly string[];
  limits: Readonly<Record<string, number>>;
}

export const TIERS: ReadonlyMap<string, Tier> = new Map(Object.entries(data));

/** A tier that the data file no longer has opens nothing, for its organizations alone. */
export const tierOf = (name: string): Tier => TIERS.get(name) ?? { capabilities: [], limits: {} };

/** @throws ServiceError INVALID_REQUEST */
export function requireTier(name: string): string {
  if (!TIERS.has(name)) throw invalid('/tier', `must be one of ${[...TIERS.keys()].join(', ')}`);
  return name;
}
