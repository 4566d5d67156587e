import type { AuditChange } from 'proto/auth/v1/auth.ts';
import { startAuth } from './fixture.ts';

it('an audit entry says what a change of auth changed, and no secret', async () => {
  const fixture = await startAuth();
  const { auth } = fixture;
  const { organizationId, user, asAdmin } = await fixture.withSecurityAdmin('starter');
  const as = fixture.asOperator(organizationId);
  const { email } = await fixture.createUser(organizationId, [], undefined, ['red']);
  await auth.setUserRoles({ email, roles: ['admin'] }, as);
  await auth.setUserGroups({ email, groups: ['red', 'blue'] }, as);
  await auth.setUserGroups({ email, groups: ['red', 'blue'] }, as);
  await auth.removeUser({ email }, as);
  const restrictions = { scopes: ['memory:read'], addressRanges: ['192.0.2.0/24'] };
  const created = await auth.createServerToken({ name: 'ci', restrictions }, asAdmin());
  const rotated = await auth.rotateServerToken({ idOrName: 'ci', overlapSeconds: 60 }, asAdmin());
  await auth.revokeServerToken({ idOrName: 'ci' }, asAdmin());
  const { jwt, grant } = await auth.issueJwt({ email: user.email }, as);
  await auth.revokeGrant({ id: grant!.id }, as);
  await auth.setOrganizationTier({ id: organizationId, tier: 'professional' }, fixture.asOperator());
  await auth.deactivateOrganization({ id: organizationId }, fixture.asOperator());
  const entries = (await fixture.auditTrail(organizationId, (actions) => actions.length >= 16)).reverse();

  const [now, end] = [grant!.createdAt, grant!.expiresAt];
  const inWords = ({ field, before, after }: AuditChange): string => `${field}: ${before.join()} > ${after.join()}`;
  const shown = entries.map(({ action, changes }) => [action, ...changes.map(inWords)]);
  const token = ['name:  > ci', 'scopes:  > memory:read', 'addressRanges:  > 192.0.2.0/24'];
  expect(shown).toEqual([
    ['organization.create', expect.stringMatching(/^name: {2}> Organization \d+$/), 'tier:  > starter'],
    ['user.create', `email:  > ${user.email}`, 'roles:  > security_admin', 'groups:  > '],
    ['user.assume'],
    ['user.create', `email:  > ${email}`, 'roles:  > ', 'groups:  > red'],
    ['user.set_roles', 'roles:  > admin'],
    ['user.set_groups', 'groups: red > blue,red'],
    ['user.set_groups'],
    ['user.remove', `email: ${email} > `, 'roles: admin > ', 'groups: blue,red > '],
    ['server_token.create', ...token],
    ['server_token.rotate', 'name: ci > ', `expiresAt:  > ${rotated.previous!.expiresAt}`],
    ['server_token.create', ...token],
    ['server_token.revoke', 'name: ci > ', `revokedAt:  > ${now}`],
    ['jwt.issue', `email:  > ${user.email}`, `expiresAt:  > ${end}`],
    ['grant.revoke', `email: ${user.email} > `, `revokedAt:  > ${now}`],
    ['organization.set_tier', 'tier: starter > professional'],
    ['organization.deactivate', 'state: active > deactivated'],
  ]);
  for (const secret of [created.value, rotated.value, jwt]) expect(JSON.stringify(entries)).not.toContain(secret);
  await fixture.stop();
});
