import { hash } from 'node:crypto';
import type { GetJwksRequest, GetJwksResponse } from 'proto/auth/v1/auth.ts';
import { parseJson } from 'platform/core/parse-json.ts';
import type { Deps } from '../deps.ts';
import { acceptedKeysAt, ALGORITHM, JWKS_MAX_AGE_S } from './rules.ts';

/** The public keys whose JWTs may be good now or soon, newest first. */
export async function getJwks(
  { signingKeys, clock }: Pick<Deps, 'signingKeys' | 'clock'>,
  _request: GetJwksRequest,
): Promise<GetJwksResponse> {
  const keys = acceptedKeysAt(await signingKeys.all(), clock.now()).map(({ _id, publicKey }) => {
    const { kty, crv, x, y } = parseJson(publicKey) as Record<'kty' | 'crv' | 'x' | 'y', string>;
    return { kty, crv, x, y, kid: _id, use: 'sig', alg: ALGORITHM };
  });
  const etag = `"${hash('sha256', JSON.stringify(keys), 'base64url')}"`;
  return { keys, cacheControl: `public, max-age=${JWKS_MAX_AGE_S}`, etag };
}
