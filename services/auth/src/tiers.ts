import { readFileSync } from 'node:fs';
import { parseJson } from 'platform/core/parse-json.ts';
import { invalid } from 'platform/core/errors.ts';

/** A licence tier of tiers.json. */
export interface Tier {
  /** What its organizations may use: "memory", "agents". */
  capabilities: readonly string[];
  /**
   * The largest number of each thing, or of its stored bytes, by name; a name that is missing has no limit. By
   * `rate_factor` (1 if missing) the gateways multiply the rate limits.
   */
  limits: Readonly<Record<string, number>>;
}

const data = parseJson(readFileSync(new URL('tiers.json', import.meta.url), 'utf8')) as Record<string, Tier>;
export const TIERS: ReadonlyMap<string, Tier> = new Map(Object.entries(data));

/** An unknown tier (one that tiers.json no longer has) allows nothing, and does not disturb other organizations. */
export const tierOf = (name: string): Tier => TIERS.get(name) ?? { capabilities: [], limits: {} };

/** @throws ServiceError INVALID_REQUEST when there is no such tier */
export function requireTier(name: string): string {
  if (!TIERS.has(name)) throw invalid('/tier', `must be one of ${[...TIERS.keys()].join(', ')}`);
  return name;
}
