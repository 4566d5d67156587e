import { readFileSync } from 'node:fs';
import { invalid } from 'platform/core/errors.ts';

/** A licence tier: what it opens, and its caps by name (absent: no cap). */
export interface Tier {
  capabilities: readonly string[];
  limits: Readonly<Record<string, number>>;
}

const data = JSON.parse(readFileSync(new URL('tiers.json', import.meta.url), 'utf8')) as Record<string, Tier>;
export const TIERS: ReadonlyMap<string, Tier> = new Map(Object.entries(data));

/** A tier that the data file no longer has opens nothing, for its organizations alone. */
export const tierOf = (name: string): Tier => TIERS.get(name) ?? { capabilities: [], limits: {} };

/** @throws ServiceError INVALID_REQUEST */
export function requireTier(name: string): string {
  if (!TIERS.has(name)) throw invalid('/tier', `must be one of ${[...TIERS.keys()].join(', ')}`);
  return name;
}
