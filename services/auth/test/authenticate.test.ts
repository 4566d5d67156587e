import { fromStatus } from 'platform/rpc/wire-errors.ts';
import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { isoTime } from 'platform/core/clock.ts';
import { allMethodOptions } from 'platform/rpc/method-options.ts';
import { principalWith } from 'platform/service/testing.ts';
import { makeToken, SERVER_TOKEN } from 'platform/core/bearer-token.ts';
import { LIST_TYPES, RUN_AGENT, denialOf, expectError, startAuth, type AuthFixture } from './fixture.ts';

describe('Authenticate', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());

  it('returns the principal of a token: its organization, name, tier and limits, without roles', async () => {
    const { organizationId, asAdmin } = await fixture.withSecurityAdmin('starter');
    const { serverToken, value: bearer } = await fixture.auth.createServerToken({ name: 'CI' }, asAdmin());
    expect(await fixture.authenticate({ bearer })).toEqual([
      {
        ...{ denial: undefined, askAlone: undefined },
        principal: {
          memoryTypes: [],
          scopes: [],
          kind: 'SERVER_TOKEN',
          organizationId,
          subject: serverToken!.id,
          name: 'CI',
          roles: [],
          groups: [],
          tier: 'starter',
          limits: {
            memory_types: 20,
            memory_objects: 10_000,
            memory_bytes: 1_073_741_824,
            execution_bytes: 1_073_741_824,
            server_tokens: 5,
          },
          via: '',
        },
      },
    ]);
  });

  it('decides each attempt of a batch separately, in the order of the attempts', async () => {
    const [one, two] = [await fixture.withSecurityAdmin('starter'), await fixture.withSecurityAdmin()];
    const { value: first } = await fixture.auth.createServerToken({ name: 'first' }, one.asAdmin());
    const { value: second } = await fixture.auth.createServerToken({ name: 'second' }, two.asAdmin());
    const decisions = await fixture.authenticate(
      { bearer: second, method: RUN_AGENT },
      { bearer: 'nonsense' },
      { bearer: first, method: RUN_AGENT },
      { bearer: first },
      { bearer: makeToken(SERVER_TOKEN) },
    );
    expect(decisions.map((decision) => decision.principal?.name ?? denialOf(decision))).toEqual([
      'second',
      'UNAUTHENTICATED',
      'TIER_REQUIRED',
      'first',
      'UNAUTHENTICATED',
    ]);
    expect(await fixture.authenticate()).toEqual([]);
  });

  it('gives the same 401 for every invalid token and for a deactivated organization', async () => {
    const [here, gone] = [await fixture.withSecurityAdmin(), await fixture.withSecurityAdmin()];
    const { value: revoked } = await fixture.auth.createServerToken({ name: 'revoked' }, here.asAdmin());
    const { value: expired } = await fixture.auth.createServerToken(
      { name: 'expired', expiresAt: isoTime(fixture.clock.now() + 1_000) },
      here.asAdmin(),
    );
    const { value: deactivated } = await fixture.auth.createServerToken({ name: 'deactivated' }, gone.asAdmin());
    const bearers = [revoked, expired, deactivated];
    for (const { principal } of await fixture.authenticate(...bearers.map((bearer) => ({ bearer }))))
      expect(principal).toBeDefined();
    await fixture.auth.revokeServerToken({ idOrName: 'revoked' }, here.asAdmin());
    await fixture.auth.deactivateOrganization({ id: gone.organizationId }, fixture.asOperator());
    fixture.clock.advance(1_000);
    const malformed = [...revoked.slice(0, -1), revoked.endsWith('0') ? '1' : '0'].join('');
    const decisions = await fixture.authenticate(
      ...['', 'nonsense', malformed, makeToken(SERVER_TOKEN), ...bearers].map((bearer) => ({ bearer })),
    );
    expect(decisions).toEqual(Array(7).fill(decisions[0]));
    expect(decisions[0]!.principal).toBeUndefined();
    expect(fromStatus(decisions[0]!.denial!)).toMatchObject({
      reason: 'UNAUTHENTICATED',
      message: 'Missing or invalid token',
      details: [],
      facts: {},
      headers: { 'WWW-Authenticate': 'Bearer' },
    });
  });

  it.each([
    ['starter', /^\/memory/],
    ['professional', /^\/(memory|agents)/],
    ['enterprise', /^\/(memory|agents)/],
  ])('lets a token of tier %s call exactly the REST methods of the capabilities of the tier', async (tier, open) => {
    const { asAdmin } = await fixture.withSecurityAdmin(tier);
    const { value: bearer } = await fixture.auth.createServerToken({ name: 'all' }, asAdmin());
    const methods = [...allMethodOptions()].filter(([, { capability }]) => capability !== '').map(([method]) => method);
    expect(methods).toEqual(expect.arrayContaining([LIST_TYPES, RUN_AGENT]));
    const decisions = await fixture.authenticate(...methods.map((method) => ({ bearer, method })));
    decisions.forEach((decision, index) =>
      expect([methods[index], decision.principal ? 'open' : denialOf(decision)]).toEqual([
        methods[index],
        open.test(methods[index]!) ? 'open' : 'TIER_REQUIRED',
      ]),
    );
  });

  it('denies a token the methods of operators and users, and methods that do not exist', async () => {
    const { asAdmin } = await fixture.withSecurityAdmin();
    const { value: bearer } = await fixture.auth.createServerToken({ name: 'none' }, asAdmin());
    const closed = [...allMethodOptions()]
      .filter(([, { principals }]) => !principals.includes('SERVER_TOKEN'))
      .map(([method]) => method);
    expect(closed).toContain('/auth.v1.AuthService/CreateServerToken');
    for (const decision of await fixture.authenticate(
      ...[...closed, '', '/no.Such/Method'].map((method) => ({ bearer, method })),
    ))
      expect(denialOf(decision)).toBe('FORBIDDEN');
  });

  it('can only be called by the gateway', async () => {
    const asMemory = fixture.as(principalWith({ kind: 'SERVICE', subject: 'memory', name: 'memory' }));
    await expectError(
      fixture.running.client(AuthServiceService, 'memory').authenticate({ attempts: [] }, asMemory),
      'FORBIDDEN',
    );
    await expectError(fixture.auth.authenticate({ attempts: [] }, fixture.asOperator()), 'FORBIDDEN');
  });
});
