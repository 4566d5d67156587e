import { newId } from 'platform/core/ids.ts';
import { refusalOf, startAuth, type AuthFixture } from './auth-fixture.ts';

describe('ActivateOrganization', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());
  const activate = (id: string) => fixture.auth.activateOrganization({ id }, fixture.asOperator());

  it('makes the tokens of a deactivated organization valid again', async () => {
    const { organizationId, asAdmin } = await fixture.withSecurityAdmin();
    const { value } = await fixture.auth.createServerToken({ name: 'one' }, asAdmin());
    await fixture.auth.deactivateOrganization({ id: organizationId }, fixture.asOperator());
    expect((await activate(organizationId)).organization!.state).toBe('active');
    expect((await fixture.authenticate({ bearer: value }))[0]!.principal!.organizationId).toBe(organizationId);
  });

  it('leaves an active organization as it is', async () => {
    const id = await fixture.createOrganization();
    const { organization } = await fixture.auth.getOrganization({ idOrName: id }, fixture.asOperator());
    fixture.clock.advance(1_000);
    expect((await activate(id)).organization).toEqual(organization);
  });

  it('answers NOT_FOUND for an unknown id', () => refusalOf(activate(newId()), 'NOT_FOUND'));
});
