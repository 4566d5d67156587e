import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { HOUR_MS } from 'platform/core/clock.ts';
import { kidOf } from '../src/authentication/verify-jwt.ts';
import { denialOf, expectError, RUN_AGENT, startAuth, type AuthFixture } from './fixture.ts';
import { encoded, newJwk, partOf, signedByStranger, userWithJwt } from './jwts.ts';

describe('IssueJwt', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());

  const decide = async (bearer: string, method?: string) =>
    (await fixture.authenticate({ bearer, ...(method && { method }) }))[0]!;

  it('issues a JWT with the claims of RFC 9068 and ours, which authenticates its user', async () => {
    const { organizationId, user, jwt, grant } = await userWithJwt(fixture, ['admin']);
    const { keys } = await fixture.gateway.getJwks({}, fixture.asGateway());
    expect(partOf(jwt, 0)).toEqual({ alg: 'ES256', typ: 'at+jwt', kid: keys[0]?.kid });
    const now = Math.floor(fixture.clock.now() / 1_000);
    expect(partOf(jwt, 1)).toEqual({
      iss: 'http://127.0.0.1:8080',
      aud: 'http://127.0.0.1:8080',
      sub: user.id,
      jti: expect.any(String),
      iat: now,
      nbf: now,
      exp: now + 3_600,
      org_id: organizationId,
      org_roles: ['admin'],
      client_id: 'admin-cli',
      grant: grant.id,
    });
    expect((await decide(jwt)).principal).toMatchObject({
      kind: 'USER',
      organizationId,
      subject: user.id,
      name: user.email,
      roles: ['admin'],
      groups: [],
      tier: 'enterprise',
      via: '',
    });
    const entry = (await fixture.auditTrail(organizationId, (actions) => actions.includes('jwt.issue')))[0];
    expect(entry).toMatchObject({
      action: 'jwt.issue',
      targetType: 'grant',
      targetId: grant.id,
      actorKind: 'operator',
    });
  });

  it('is for members of an active organization', async () => {
    const { organizationId, user } = await userWithJwt(fixture);
    const issue = (email: string) => fixture.auth.issueJwt({ email }, fixture.asOperator(organizationId));
    await expectError(issue('nobody@example.com'), 'NOT_FOUND');
    await expectError(issue('no address'), 'INVALID_REQUEST');
    await fixture.auth.deactivateOrganization({ id: organizationId }, fixture.asOperator());
    await expectError(issue(user.email), 'FORBIDDEN');
  });

  it('the JWT follows roles and groups, and dies with the membership, on the next request', async () => {
    const { organizationId, user, jwt } = await userWithJwt(fixture, ['admin']);
    const { email } = user;
    const asOperator = fixture.asOperator(organizationId);
    expect(denialOf(await decide(jwt, RUN_AGENT))).toBeUndefined();
    await fixture.auth.setUserRoles({ email, roles: [] }, asOperator);
    await fixture.auth.setUserGroups({ email, groups: ['finance'] }, asOperator);
    expect(denialOf(await decide(jwt, RUN_AGENT))).toBe('ADMIN_REQUIRED');
    expect((await decide(jwt)).principal).toMatchObject({ roles: [], groups: ['finance'] });
    await fixture.auth.removeUser({ email }, asOperator);
    expect(denialOf(await decide(jwt))).toBe('UNAUTHENTICATED');
  });

  it('the JWT dies with its organization, and lives again with it', async () => {
    const { organizationId: id, jwt } = await userWithJwt(fixture);
    await fixture.auth.deactivateOrganization({ id }, fixture.asOperator());
    expect(denialOf(await decide(jwt))).toBe('UNAUTHENTICATED');
    await fixture.auth.activateOrganization({ id }, fixture.asOperator());
    expect(denialOf(await decide(jwt))).toBeUndefined();
  });

  it('a user in two organizations acts in the one that the JWT names', async () => {
    const one = await userWithJwt(fixture, ['admin']);
    const other = await fixture.createOrganization();
    await fixture.createUser(other, [], one.user.email);
    expect((await decide(one.jwt)).principal).toMatchObject({ organizationId: one.organizationId, roles: ['admin'] });
    await fixture.auth.removeUser({ email: one.user.email }, fixture.asOperator(one.organizationId));
    expect(denialOf(await decide(one.jwt))).toBe('UNAUTHENTICATED');
  });

  it('every JWT that is not ours, or not good now, gets the same 401, and wrong forms cost no read', async () => {
    const { jwt } = await userWithJwt(fixture);
    const [header, payload, signature] = jwt.split('.') as [string, string, string];
    const head = partOf(jwt, 0) as { kid: string };
    const claims = partOf(jwt, 1);
    const with_ = (change: object): string => `${encoded({ ...head, ...change })}.${payload}.${signature}`;
    const { keys } = await fixture.gateway.getJwks({}, fixture.asGateway());
    const hs256 = `${encoded({ ...head, alg: 'HS256' })}.${payload}`;
    const mac = createHmac('sha256', JSON.stringify(keys[0])).update(hs256).digest('base64url');
    const withoutRead = [
      `${encoded({ alg: 'none', typ: 'at+jwt', kid: head.kid })}.${payload}.`,
      with_({ alg: 'none' }),
      `${hs256}.${mac}`,
      with_({ alg: 'ES384' }),
      with_({ typ: 'JWT' }),
      with_({ typ: undefined }),
      with_({ kid: '../../etc/passwd' }),
      with_({ kid: undefined }),
      with_({ kid: ['a'] }),
      with_({ crit: ['exp'] }),
      with_({ jwk: await newJwk() }),
      with_({ jku: 'https://evil.example/jwks.json' }),
      with_({ x5u: 'https://evil.example/cert' }),
      `${header}.${payload}`,
      `${jwt}.x`,
      `${jwt}=`,
      ` ${jwt}`,
      `${header}.${'A'.repeat(3_001)}.${signature}`,
      `.${payload}.${signature}`,
      `${Buffer.from('[]').toString('base64url')}.${payload}.${signature}`,
    ];
    expect(withoutRead.filter((bearer) => kidOf(bearer) !== undefined)).toEqual([]);
    const withRead = [
      with_({ kid: '01234567-89ab-7cde-8f01-23456789abcd' }),
      `${header}.${encoded({ ...claims, org_roles: ['security_admin'] })}.${signature}`,
      `${header}.${payload}.${'A'.repeat(86)}`,
      await signedByStranger(head, claims),
    ];
    const decisions = await fixture.authenticate(...[...withoutRead, ...withRead].map((bearer) => ({ bearer })));
    const [first] = decisions;
    expect(denialOf(first!)).toBe('UNAUTHENTICATED');
    for (const decision of decisions) expect(decision).toEqual(first);
    expect(denialOf(await decide(jwt))).toBeUndefined();
  });

  it('a text that is no JWT of ours is refused without a look at keys, whatever it is', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary' }), { maxLength: 5 }), (parts) => {
        expect(kidOf(parts.join('.'))).toBeUndefined();
      }),
    );
  });

  it('it is good for one hour, for a clock that is a minute behind, too, and no longer', async () => {
    const { jwt } = await userWithJwt(fixture);
    fixture.clock.advance(-59_000);
    expect(denialOf(await decide(jwt))).toBeUndefined();
    fixture.clock.advance(-2_000);
    expect(denialOf(await decide(jwt))).toBe('UNAUTHENTICATED');
    fixture.clock.advance(61_000 + HOUR_MS - 1_001);
    expect(denialOf(await decide(jwt))).toBeUndefined();
    fixture.clock.advance(1_001);
    expect(denialOf(await decide(jwt))).toBe('UNAUTHENTICATED');
  });
});
