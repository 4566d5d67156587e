import { importJWK, SignJWT } from 'jose';
import type { IssueJwtRequest, IssueJwtResponse } from 'proto/auth/v1/auth.ts';
import { parseJson } from 'platform/core/parse-json.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { ServiceError, unavailable } from 'platform/core/errors.ts';
import { newId } from 'platform/core/ids.ts';
import { changesOf } from 'platform/events/audit-changes.ts';
import { auditEntry } from '../events.ts';
import type { Deps } from '../deps.ts';
import { openPrivateKey } from '../signing-keys/private-key.ts';
import { ALGORITHM, JWT_MS, signingKeyAt } from '../signing-keys/rules.ts';
import { requireEmail } from '../users/rules.ts';
import { expectUnchanged } from '../users/store.ts';
import { grantMessage } from './message.ts';
import type { GrantRecord } from './store.ts';

type Needs = Pick<Deps, 'clock' | 'config' | 'organizations' | 'users' | 'grants' | 'signingKeys' | 'sealing'>;

/** The program for which an operator asks. */
const CLIENT_ID = 'admin-cli';

/**
 * Issues a JWT (RFC 7519, RFC 9068) that is good for one hour, under a grant of its own.
 * @throws ServiceError INVALID_REQUEST, NOT_FOUND, FORBIDDEN (organization deactivated), UNAVAILABLE (no key)
 */
export async function issueJwt(
  { clock, config, organizations, users, grants, signingKeys, sealing }: Needs,
  request: IssueJwtRequest,
  context: CallContext,
): Promise<IssueJwtResponse> {
  const organizationId = organizationOfCall(context);
  const email = requireEmail(request.email);
  const [organization, member, keys] = await Promise.all([
    organizations.byId(organizationId),
    users.membershipByEmail(organizationId, email),
    signingKeys.all(),
  ]);
  if (!organization || !member) throw new ServiceError('NOT_FOUND', 'User not found');
  if (organization.state !== 'active') throw new ServiceError('FORBIDDEN', 'The organization is deactivated');
  const nowMs = clock.now();
  const key = signingKeyAt(keys, nowMs);
  if (!key) throw unavailable('No key signs JWTs yet', 'no signing key');

  const grant: GrantRecord = {
    _id: newId(),
    organizationId,
    userId: member.userId,
    email,
    clientId: CLIENT_ID,
    createdAt: isoTime(nowMs),
    createdBy: context.principal.subject,
    expiresAt: isoTime(nowMs + JWT_MS),
    revokedAt: null,
  };
  const privateKey = await importJWK(parseJson(openPrivateKey(sealing, key)) as object, ALGORITHM);
  const seconds = Math.floor(nowMs / 1_000);
  const jwt = await new SignJWT({
    org_id: organizationId,
    org_roles: member.roles,
    client_id: CLIENT_ID,
    grant: grant._id,
  })
    .setProtectedHeader({ alg: ALGORITHM, typ: 'at+jwt', kid: key._id })
    .setIssuer(config.JWT_ISSUER)
    .setAudience(config.JWT_ISSUER)
    .setSubject(member.userId)
    .setJti(newId())
    .setIssuedAt(seconds)
    .setNotBefore(seconds)
    .setExpirationTime(seconds + JWT_MS / 1_000)
    .sign(privateKey);
  await grants.create(grant, [
    expectUnchanged(member),
    auditEntry(
      context,
      organizationId,
      'jwt.issue',
      { type: 'grant', id: grant._id },
      grant.createdAt,
      changesOf({}, { email, expiresAt: grant.expiresAt }),
    ),
  ]);
  return { jwt, grant: grantMessage(grant) };
}
