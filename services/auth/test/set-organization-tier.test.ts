import { newId } from 'platform/core/ids.ts';
import { RUN_AGENT, denialOf, refusalOf, startAuth, type AuthFixture } from './auth-fixture.ts';

describe('SetOrganizationTier', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());
  const setTier = (id: string, tier: string) => fixture.auth.setOrganizationTier({ id, tier }, fixture.asOperator());

  it('opens and closes what the tier allows with the next request', async () => {
    const { organizationId, asAdmin } = await fixture.withSecurityAdmin('starter');
    const { value: bearer } = await fixture.auth.createServerToken({ name: 'one' }, asAdmin());
    const run = async () => (await fixture.authenticate({ bearer, method: RUN_AGENT }))[0]!;
    expect(denialOf(await run())).toBe('TIER_REQUIRED');
    expect((await setTier(organizationId, 'professional')).organization!.tier).toBe('professional');
    expect((await run()).principal).toMatchObject({
      tier: 'professional',
      limits: { memory_types: 200, memory_objects: 1_000_000, server_tokens: 50 },
    });
    await setTier(organizationId, 'starter');
    expect(denialOf(await run())).toBe('TIER_REQUIRED');
  });

  it('refuses a tier that the data file does not have', async () => {
    const error = await refusalOf(setTier(await fixture.createOrganization(), 'platinum'), 'INVALID_REQUEST');
    expect(error.details[0]!.path).toBe('/tier');
  });

  it('answers NOT_FOUND for an unknown id', () => refusalOf(setTier(newId(), 'starter'), 'NOT_FOUND'));
});
