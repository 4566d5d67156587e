import type { FindStoppedActorsRequest, FindStoppedActorsResponse } from 'proto/auth/v1/auth.ts';
import type { Deps } from '../deps.ts';

/** Whose runs must not go on. An organization that auth does not know, as after a restore, stops nothing. */
export async function findStoppedActors(
  { organizations, tokenLookup }: Pick<Deps, 'organizations' | 'tokenLookup'>,
  { actors }: FindStoppedActorsRequest,
): Promise<FindStoppedActorsResponse> {
  const idsOf = (ids: readonly string[]): string[] => [...new Set(ids)].filter((id) => id !== '');
  const [organizationsById, tokens] = await Promise.all([
    organizations.byIds(idsOf(actors.map(({ organizationId }) => organizationId))),
    tokenLookup.withCancelledRuns(idsOf(actors.map(({ serverTokenId }) => serverTokenId))),
  ]);
  return {
    stopped: actors.filter(
      ({ organizationId, serverTokenId }) =>
        organizationsById.get(organizationId)?.state === 'deactivated' ||
        tokens.some((token) => token._id === serverTokenId && token.organizationId === organizationId),
    ),
  };
}
