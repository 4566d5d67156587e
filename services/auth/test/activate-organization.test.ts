import { newId } from 'platform/core/ids.ts';
import { expectError, startAuth, type AuthFixture } from './fixture.ts';

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

  it('does not change an organization that is active already', async () => {
    const id = await fixture.createOrganization();
    const { organization } = await fixture.auth.getOrganization({ idOrName: id }, fixture.asOperator());
    fixture.clock.advance(1_000);
    expect((await activate(id)).organization).toEqual(organization);
  });

  it('rejects an unknown id with NOT_FOUND', () => expectError(activate(newId()), 'NOT_FOUND'));
  it('rejects an empty id', () => expectError(activate(''), 'INVALID_REQUEST'));
});
