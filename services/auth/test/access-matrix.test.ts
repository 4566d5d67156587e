import { ROUTES } from '../../../test/support/routes.ts';
import type { KnownReason } from 'platform/core/errors.ts';
import { makeToken, SERVER_TOKEN } from 'platform/core/bearer-token.ts';
import { denialOf, LIST_TYPES, RUN_AGENT, startAuth, type AuthFixture } from './fixture.ts';

const TIERS = ['starter', 'professional', 'enterprise'];
const ROLES = [[], ['admin'], ['security_admin'], ['admin', 'security_admin']];
const METHODS = [...new Set(ROUTES.map(({ method }) => method.path))];

/** Written by hand from the specification: first the tier, then the role; a server token has the role admin. */
function expected(method: string, tier: string, isAdmin: boolean): KnownReason | 'open' {
  if (method === '/auth.v1.AuthService/WhoAmI' || method.startsWith('/memory.')) return 'open';
  if (!method.startsWith('/agents.')) throw new Error(`${method}: say here who may call it`);
  if (tier === 'starter') return 'TIER_REQUIRED';
  return isAdmin ? 'open' : 'ADMIN_REQUIRED';
}

describe.each(TIERS)('in an organization of tier %s', (tier) => {
  let fixture: AuthFixture;
  let organizationId: string;
  let bearers: { who: string; bearer: string; isAdmin: boolean }[];
  beforeAll(async () => {
    fixture = await startAuth();
    const { asAdmin, ...organization } = await fixture.withSecurityAdmin(tier);
    ({ organizationId } = organization);
    const { value } = await fixture.auth.createServerToken({ name: 'CI' }, asAdmin());
    bearers = [{ who: 'a server token', bearer: value, isAdmin: true }];
    for (const roles of ROLES) {
      const { email } = await fixture.createUser(organizationId, roles);
      const { jwt } = await fixture.auth.issueJwt({ email }, fixture.asOperator(organizationId));
      bearers.push({ who: `a user with the roles [${roles.join()}]`, bearer: jwt, isAdmin: roles.includes('admin') });
    }
  });
  afterAll(() => fixture.stop());

  const decideAll = async (bearer: string) =>
    (await fixture.authenticate(...METHODS.map((method) => ({ bearer, method })))).map(
      (decision, index) => `${METHODS[index]} ${decision.principal ? 'open' : denialOf(decision)}`,
    );
  const all = (reason: KnownReason) => METHODS.map((method) => `${method} ${reason}`);

  it('each principal may call the methods of the REST API that its tier and its roles allow', async () => {
    expect(METHODS).toEqual(expect.arrayContaining([LIST_TYPES, RUN_AGENT]));
    for (const { who, bearer, isAdmin } of bearers)
      expect([who, ...(await decideAll(bearer))]).toEqual([
        who,
        ...METHODS.map((method) => `${method} ${expected(method, tier, isAdmin)}`),
      ]);
  });

  it('an unknown bearer, and each of these once its organization is deactivated, is 401 before all else', async () => {
    expect(await decideAll(makeToken(SERVER_TOKEN))).toEqual(all('UNAUTHENTICATED'));
    await fixture.auth.deactivateOrganization({ id: organizationId }, fixture.asOperator());
    for (const { who, bearer } of bearers)
      expect([who, ...(await decideAll(bearer))]).toEqual([who, ...all('UNAUTHENTICATED')]);
  });
});
