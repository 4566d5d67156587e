import { DAY_MS, HOUR_MS } from 'platform/core/clock.ts';
import { expectError, startAuth, type AuthFixture } from './fixture.ts';
import { userWithJwt } from './jwts.ts';

describe('ListGrants', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());

  it('lists the grants of one organization, newest first and in pages, until a day after their end', async () => {
    const { organizationId, user, grant: first } = await userWithJwt(fixture);
    await userWithJwt(fixture);
    const asOperator = fixture.asOperator(organizationId);
    const { grant: second } = await fixture.auth.issueJwt({ email: user.email }, asOperator);
    const list = async (pageSize = 0, afterId = '') =>
      (await fixture.auth.listGrants({ pageSize, afterId }, asOperator)).grants;
    expect(await list()).toEqual([second, first]);
    expect(await list(1, second!.id)).toEqual([first]);
    expect(first).toMatchObject({ userId: user.id, email: user.email, clientId: 'admin-cli', createdBy: 'test' });
    await expectError(list(-1), 'INVALID_REQUEST');
    fixture.clock.advance(HOUR_MS + DAY_MS);
    await fixture.running.runJob('grant-retention');
    expect(await list()).toHaveLength(2);
    fixture.clock.advance(1);
    expect((await fixture.running.runJob('grant-retention')).count).toBe(3);
    expect(await list()).toEqual([]);
  });
});
