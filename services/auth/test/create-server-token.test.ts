import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { newId } from 'platform/core/ids.ts';
import { serverToken } from 'platform/service/testing.ts';
import { isoTime } from 'platform/core/clock.ts';
import { expectError, startAuth, type AuthFixture } from './fixture.ts';

describe('CreateServerToken', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());
  const inMs = (ms: number) => isoTime(fixture.clock.now() + ms);

  it('returns the value once, and otherwise only what a list may show', async () => {
    const { user, asAdmin } = await fixture.withSecurityAdmin();
    const { serverToken: token, value } = await fixture.auth.createServerToken({ name: 'CI pipeline' }, asAdmin());
    expect(token).toEqual({
      id: token!.id,
      name: 'CI pipeline',
      hint: value.slice(0, 8),
      createdAt: inMs(0),
      createdBy: user.email,
      lastUsedAt: undefined,
      expiresAt: undefined,
      revokedAt: undefined,
      scopes: ['memory:read', 'memory:write', 'agents:run'],
      addressRanges: [],
      runsCancelled: false,
    });
    const listed = await fixture.auth.listServerTokens({ pageSize: 0, afterId: '' }, asAdmin());
    expect(listed.serverTokens).toEqual([token]);
    expect(JSON.stringify(listed)).not.toContain(value.slice(8));
  });

  it('creates all of thirty tokens that are requested at once', async () => {
    const { asAdmin } = await fixture.withSecurityAdmin();
    const created = await Promise.all(
      Array.from({ length: 30 }, (_, i) => fixture.auth.createServerToken({ name: `token ${i}` }, asAdmin())),
    );
    expect(new Set(created.map(({ value }) => value)).size).toBe(30);
  });

  it.each([
    [[], false],
    [[], true],
    [['admin'], false],
  ])(
    'is denied to a user with the roles %j (who claims more: %j), and the denial is in the audit trail',
    async (roles, claimsMore) => {
      const organizationId = await fixture.createOrganization();
      const { email } = await fixture.createUser(organizationId, roles);
      const own = await fixture.assume(organizationId, email);
      const asserted = claimsMore ? { ...own, roles: ['admin', 'security_admin'] } : own;
      const error = await expectError(fixture.auth.createServerToken({ name: 'x' }, fixture.as(asserted)), 'FORBIDDEN');
      expect(error.message).toBe('Security administrator required');
      const entries = await fixture.auditTrail(organizationId, (actions) => actions.includes('request.refused'));
      expect(entries[0]).toMatchObject({
        action: 'request.refused',
        outcome: 'denied',
        code: 'forbidden',
        actorKind: 'user',
      });
    },
  );

  it('is denied to a server token, an operator, the gateway and a user of another organization', async () => {
    const { organizationId, principal } = await fixture.withSecurityAdmin();
    const create = (options: ReturnType<typeof fixture.as>, auth = fixture.auth) =>
      auth.createServerToken({ name: 'x' }, options);
    const fromGateway = fixture.running.client(AuthServiceService, 'gateway');
    await expectError(create(fixture.as(serverToken(organizationId)), fromGateway), 'FORBIDDEN');
    await expectError(create(fixture.as(principal), fromGateway), 'FORBIDDEN');
    await expectError(create(fixture.asOperator(organizationId)), 'FORBIDDEN');
    for (const other of [await fixture.createOrganization(), newId()])
      await expectError(create(fixture.as({ ...principal, organizationId: other })), 'FORBIDDEN');
  });

  it('keeps names unique among the tokens that are neither revoked nor expired', async () => {
    const { asAdmin } = await fixture.withSecurityAdmin();
    const create = (expiresAt?: string) => fixture.auth.createServerToken({ name: 'Name', expiresAt }, asAdmin());
    const { serverToken: first } = await create();
    expect(
      (await expectError(fixture.auth.createServerToken({ name: 'nAME' }, asAdmin()), 'ALREADY_EXISTS')).facts,
    ).toEqual({ id: first!.id });
    await fixture.auth.revokeServerToken({ idOrName: 'name' }, asAdmin());
    const { serverToken: second } = await create(inMs(1_000));
    await expectError(create(), 'ALREADY_EXISTS');
    fixture.clock.advance(1_000);
    const { serverToken: third } = await create();
    expect(new Set([first!.id, second!.id, third!.id]).size).toBe(3);
  });

  it('never creates more live tokens than the tier allows, however many are requested at once', async () => {
    const { asAdmin } = await fixture.withSecurityAdmin('starter');
    const create = (name: string, expiresAt?: string) => fixture.auth.createServerToken({ name, expiresAt }, asAdmin());
    await create('expires', inMs(1_000));
    await create('revoked');
    const results = await Promise.allSettled(Array.from({ length: 12 }, (_, n) => create(`token ${n}`)));
    const created = results.filter(({ status }) => status === 'fulfilled').length;
    expect(created).toBeLessThanOrEqual(3);
    for (const result of results)
      if (result.status === 'rejected') expect(['TIER_LIMIT', 'CONFLICT']).toContain(result.reason.reason);
    for (let n = created; n < 3; n++) await create(`filler ${n}`);
    expect((await expectError(create('one more'), 'TIER_LIMIT')).facts).toEqual({ limit: 'server_tokens' });
    await fixture.auth.revokeServerToken({ idOrName: 'revoked' }, asAdmin());
    fixture.clock.advance(1_000);
    await create('one more');
    await create('two more');
    await expectError(create('three more'), 'TIER_LIMIT');
  });

  it('uses the id in the request, once; a name that is taken gives the id of the token that has it', async () => {
    const { asAdmin } = await fixture.withSecurityAdmin();
    const id = newId();
    expect((await fixture.auth.createServerToken({ name: 'mine', id }, asAdmin())).serverToken!.id).toBe(id);
    expect(
      (await expectError(fixture.auth.createServerToken({ name: 'mine', id: newId() }, asAdmin()), 'ALREADY_EXISTS'))
        .facts,
    ).toEqual({ id });
    await fixture.auth.revokeServerToken({ idOrName: id }, asAdmin());
    expect(
      (await expectError(fixture.auth.createServerToken({ name: 'mine', id }, asAdmin()), 'ALREADY_EXISTS')).facts,
    ).toEqual({ id });
  });

  it.each([
    ['/name', { name: '' }],
    ['/name', { name: 'a\u0007' }],
    ['/expiresAt', { name: 'x', expiresAt: 'soon' }],
    ['/expiresAt', { name: 'x', expiresAt: '2001-01-01T00:00:00Z' }],
    ['/id', { name: 'x', id: 'mine' }],
  ])('names %s when it rejects %j', async (path, request) => {
    const { asAdmin } = await fixture.withSecurityAdmin();
    expect(
      (await expectError(fixture.auth.createServerToken(request, asAdmin()), 'INVALID_REQUEST')).details[0]!.path,
    ).toBe(path);
  });
});
