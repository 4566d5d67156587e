import { invalid } from 'platform/core/errors.ts';

/** What a server token may do; the options of a method name the one that it needs. */
export const SCOPES = ['memory:read', 'memory:write', 'agents:run'] as const;
export type Scope = (typeof SCOPES)[number];

/**
 * Each scope once, in the order of SCOPES.
 * @returns undefined for all: a token without scopes of its own also gets those of later releases
 * @throws ServiceError INVALID_REQUEST at the first unknown scope
 */
export function requireScopes(scopes: readonly string[]): Scope[] | undefined {
  const unknown = scopes.findIndex((scope) => !SCOPES.some((known) => known === scope));
  if (unknown >= 0)
    throw invalid(`/scopes/${unknown}`, `A scope must be one of ${SCOPES.join(', ')}, not ${scopes[unknown]}`);
  return scopes.length === 0 ? undefined : SCOPES.filter((scope) => scopes.includes(scope));
}
