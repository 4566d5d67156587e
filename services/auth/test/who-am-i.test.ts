import { principalWith } from 'platform/service/testing.ts';
import { startAuth, type AuthFixture } from './fixture.ts';

describe('WhoAmI', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    // nothing listens there
    fixture = await startAuth({ CREDITS_ADDRESS: '127.0.0.1:1' });
  });
  afterAll(() => fixture.stop());

  it('shows who asks and what its organization may use, also while credits does not answer', async () => {
    const organizationId = await fixture.createOrganization('starter');
    const token = principalWith({ kind: 'SERVER_TOKEN', organizationId, subject: 'token-id', name: 'import' });
    const rates = [{ rate: 'requests', limit: 'token', maxPerMinute: 600, left: 599 }];
    const answer = await fixture.gateway.whoAmI({ rates }, fixture.as(token));
    expect({ ...answer, limits: JSON.parse(answer.limits) as object }).toEqual({
      kind: 'server_token',
      id: 'token-id',
      name: 'import',
      organization: { id: organizationId, name: expect.any(String) },
      roles: ['admin'],
      groups: [],
      tier: 'starter',
      capabilities: ['memory'],
      limits: expect.objectContaining({ memory_types: 20, server_tokens: 5 }),
      credits: undefined,
      rates,
    });
    const user = principalWith({ kind: 'USER', organizationId, subject: 'user-id', name: 'a@b.c', groups: ['g'] });
    expect(await fixture.gateway.whoAmI({ rates: [] }, fixture.as(user))).toMatchObject({
      kind: 'user',
      roles: [],
      groups: ['g'],
    });
  });
});
