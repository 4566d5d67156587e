import type { Principal } from 'platform/core/principal.ts';
import { expectError, startAuth, type AuthFixture } from './fixture.ts';

describe('a user, whose name goes into the audit trail', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());

  it.each<[string, (own: Principal, other: Principal) => Partial<Principal>]>([
    ["another security administrator's e-mail", (_own, { name }) => ({ name })],
    ["another security administrator's id", (_own, { subject }) => ({ subject })],
    ['an e-mail that nobody has', () => ({ name: 'nobody@example.com' })],
    ['a name that is no e-mail', () => ({ name: 'Ada' })],
    ['no name', () => ({ name: '' })],
    ['its e-mail in other letters', ({ name }) => ({ name: name.toUpperCase() })],
  ])('can do nothing with %s', async (_what, change) => {
    const { organizationId, principal } = await fixture.withSecurityAdmin();
    const { email } = await fixture.createUser(organizationId, ['security_admin']);
    const asserted = { ...principal, ...change(principal, await fixture.assume(organizationId, email)) };
    const { auth } = fixture;
    const asChanged = () => fixture.as(asserted);
    await expectError(auth.createServerToken({ name: 'theirs' }, asChanged()), 'FORBIDDEN');
    await expectError(auth.listServerTokens({ pageSize: 0, afterId: '' }, asChanged()), 'FORBIDDEN');
    await auth.createServerToken({ name: 'own' }, fixture.as(principal));
    await expectError(auth.revokeServerToken({ idOrName: 'own' }, asChanged()), 'FORBIDDEN');
    const trail = await fixture.auditTrail(organizationId, (actions) => actions.includes('server_token.create'));
    const changes = trail.filter(({ action }) => action.startsWith('server_token.'));
    expect(changes).toMatchObject([{ actorId: principal.subject, actorName: principal.name, outcome: 'success' }]);
  });
});
