import { decodeJwt, decodeProtectedHeader, importJWK, jwtVerify, type JWTPayload } from 'jose';
import { parseJson } from 'platform/core/parse-json.ts';
import { isUuid } from 'platform/core/ids.ts';
import { ALGORITHM, SKEW_MS } from '../signing-keys/rules.ts';
import type { SigningKeyRecord } from '../signing-keys/store.ts';

/** What auth reads of a JWT that it has issued. */
export interface Claims {
  organizationId: string;
  userId: string;
  grantId: string;
  /** Milliseconds since the epoch. */
  issuedAt: number;
  notBefore: number;
  expiresAt: number;
}

/** The last digit of a signature holds two bits. That ECDSA accepts r, n - s in place of r, s gives nobody anything. */
const FORM = /^[\w-]{1,512}\.[\w-]{1,3000}\.[\w-]{85}[AQgw]$/;
const HEADERS = ['alg', 'kid', 'typ'];

/**
 * The id of the key that signed it, if it has the form of our JWTs: nothing is read or computed for anything else. A
 * header has exactly the members that we write, so none can name another key or algorithm (RFC 8725).
 */
export function kidOf(bearer: string): string | undefined {
  if (!FORM.test(bearer)) return undefined;
  try {
    const header = decodeProtectedHeader(bearer);
    const { alg, typ, kid } = header;
    const isOurs = Object.keys(header).sort().join() === HEADERS.join() && alg === ALGORITHM && typ === 'at+jwt';
    return isOurs && typeof kid === 'string' && isUuid(kid) ? kid : undefined;
  } catch {
    return undefined;
  }
}

/** The organization that the claims name before anything is checked: only where to look for a JWT that was checked. */
export function claimedOrganization(bearer: string): string {
  try {
    const { org_id: organizationId } = decodeJwt(bearer);
    return typeof organizationId === 'string' ? organizationId : '';
  } catch {
    return '';
  }
}

/** Checks the signature, and reads the claims; `isTimely` checks the times. @returns undefined if it is not ours */
export async function verifyJwt(
  bearer: string,
  { publicKey }: Pick<SigningKeyRecord, 'publicKey'>,
  issuer: string,
): Promise<Claims | undefined> {
  try {
    const key = await importJWK(parseJson(publicKey) as object, ALGORITHM);
    const { payload } = await jwtVerify(bearer, key, {
      algorithms: [ALGORITHM],
      typ: 'at+jwt',
      issuer,
      audience: issuer,
      requiredClaims: ['sub', 'jti', 'iat', 'nbf', 'exp', 'org_id', 'grant', 'client_id'],
      // whether it is timely is asked on each request; the signature is checked once
      currentDate: new Date(0),
      clockTolerance: Number.MAX_SAFE_INTEGER,
    });
    return claimsOf(payload);
  } catch {
    return undefined;
  }
}

export const isTimely = ({ issuedAt, notBefore, expiresAt }: Claims, nowMs: number): boolean =>
  issuedAt <= nowMs + SKEW_MS && notBefore <= nowMs + SKEW_MS && nowMs < expiresAt;

function claimsOf({ sub, iat, nbf, exp, org_id: organizationId, grant }: JWTPayload): Claims | undefined {
  const ids = [sub, organizationId, grant];
  const times = [iat, nbf, exp];
  if (!ids.every((id) => typeof id === 'string' && isUuid(id))) return undefined;
  if (!times.every((time) => typeof time === 'number' && Number.isFinite(time))) return undefined;
  const [userId, organization, grantId] = ids as [string, string, string];
  const [issuedAt, notBefore, expiresAt] = (times as number[]).map((time) => time * 1_000) as [number, number, number];
  return { userId, organizationId: organization, grantId, issuedAt, notBefore, expiresAt };
}
