import { anyOf, requestOf, type Access, type BenchRequest, type Kind } from './requests.ts';

/** A mixture of requests. */
export interface Scenario {
  name: string;
  title: string;
  /** Organizations, each with TOKENS_EACH tokens. */
  organizations: number;
  /** JWTs of a user in place of server tokens. */
  jwts?: true;
  /** Of a hundred requests. */
  shares: Partial<Record<Kind, number>>;
}

/** Tokens of each organization in a scenario of several. */
export const TOKENS_EACH = 10;

const one = (kind: Kind, title: string): Scenario => ({
  name: kind,
  title,
  organizations: 1,
  shares: { [kind]: 100 },
});

export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  get: one('get', 'get (random objects)'),
  list: one('list', 'list (page of 20)'),
  create: one('create', 'create'),
  run: one('run', 'run (an expression; systems without agents create)'),
  tokens: { ...one('get', 'get, 1,000 tokens of 100 organizations'), name: 'tokens', organizations: 100 },
  jwts: { ...one('get', 'get, with JWTs'), name: 'jwts', jwts: true },
  mixed: {
    name: 'mixed',
    title: '80 % get, 15 % list, 5 % create',
    organizations: 1,
    shares: { get: 80, list: 15, create: 5 },
  },
};

/** Of the product alone: the baseline lacks filtered, deep, update and upsert. */
export const MEMORY_SCENARIOS: Readonly<Record<string, Scenario>> = {
  ...{ get: SCENARIOS.get!, list: SCENARIOS.list! },
  filtered: one('filtered', 'list with the filter key'),
  deep: one('deep', 'list at a random cursor (page of 20)'),
  create: SCENARIOS.create!,
  update: one('update', 'update'),
  upsert: one('upsert', 'upsert (replaces)'),
};

/** The scenario of a system that runs no agents: it creates an object where the product runs one. */
export function runsAsCreates(scenario: Scenario): Scenario {
  const { run = 0, create = 0, ...others } = scenario.shares;
  if (run === 0) return scenario;
  return { ...scenario, name: `create in place of ${scenario.name}`, shares: { ...others, create: create + run } };
}

/** The next request of a scenario. @param accesses as many tokens as the scenario needs */
export function nextOf({ shares }: Scenario, accesses: readonly Access[]): () => BenchRequest {
  const kinds = Object.entries(shares).flatMap(([kind, share]) => Array<Kind>(share).fill(kind as Kind));
  return () => requestOf(anyOf(kinds), anyOf(accesses));
}
