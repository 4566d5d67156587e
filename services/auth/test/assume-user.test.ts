import { newId } from 'platform/core/ids.ts';
import { expectError, startAuth, type AuthFixture } from './fixture.ts';

describe('AssumeUser', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());

  it('returns the current principal of the user, with the operator in via, and writes an audit entry', async () => {
    const organizationId = await fixture.createOrganization('starter');
    const user = await fixture.createUser(organizationId, ['admin'], 'ada@example.com', ['red']);
    expect(await fixture.assume(organizationId, 'ADA@example.com')).toEqual({
      kind: 'USER',
      organizationId,
      subject: user.id,
      name: 'ada@example.com',
      roles: ['admin'],
      groups: ['red'],
      tier: 'starter',
      limits: {
        memory_types: 20,
        memory_objects: 10_000,
        memory_bytes: 1_073_741_824,
        execution_bytes: 1_073_741_824,
        server_tokens: 5,
      },
      via: 'test',
      memoryTypes: [],
      scopes: [],
    });
    const [entry] = await fixture.auditTrail(organizationId, (actions) => actions.includes('user.assume'));
    expect(entry).toMatchObject({
      action: 'user.assume',
      actorKind: 'operator',
      actorName: 'test',
      targetType: 'user',
      targetId: user.id,
    });
  });

  it('names the operator as actorVia in the audit entries of what is done as the user', async () => {
    const { organizationId, user, asAdmin } = await fixture.withSecurityAdmin();
    await fixture.auth.createServerToken({ name: 'one' }, asAdmin());
    const [entry] = await fixture.auditTrail(organizationId, (actions) => actions.includes('server_token.create'));
    expect(entry).toMatchObject({
      action: 'server_token.create',
      actorKind: 'user',
      actorId: user.id,
      actorVia: 'test',
    });
  });

  it('rejects a user who is not in this organization with NOT_FOUND', async () => {
    const { user } = await fixture.withSecurityAdmin();
    await expectError(fixture.assume(await fixture.createOrganization(), user.email), 'NOT_FOUND');
    await expectError(fixture.assume(newId(), user.email), 'NOT_FOUND');
  });
});
