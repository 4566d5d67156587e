import { exportJWK, generateKeyPair, SignJWT, type JWTPayload } from 'jose';
import type { AuthFixture } from './fixture.ts';

export type Json = Record<string, unknown>;

/** A part of a JWT as JSON. */
export const partOf = (jwt: string, index: 0 | 1): Json =>
  JSON.parse(Buffer.from(jwt.split('.')[index] as string, 'base64url').toString()) as Json;
export const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** A user of a new organization with a JWT. */
export async function userWithJwt(fixture: AuthFixture, roles: string[] = ['admin'], tier = 'enterprise') {
  const organizationId = await fixture.createOrganization(tier);
  const user = await fixture.createUser(organizationId, roles);
  const { jwt, grant } = await fixture.auth.issueJwt({ email: user.email }, fixture.asOperator(organizationId));
  return { organizationId, user, jwt, grant: grant! };
}

/** Signs claims with a key of our own, as a stranger could. */
export async function signedByStranger(header: { kid: string } & Json, claims: JWTPayload): Promise<string> {
  const { privateKey } = await generateKeyPair('ES256');
  return new SignJWT(claims).setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', ...header }).sign(privateKey);
}
export async function newJwk(): Promise<Json> {
  const { publicKey } = await generateKeyPair('ES256', { extractable: true });
  return await exportJWK(publicKey);
}
