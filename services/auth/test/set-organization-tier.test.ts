import { newId } from 'platform/core/ids.ts';
import { RUN_AGENT, denialOf, expectError, startAuth, type AuthFixture } from './fixture.ts';

describe('SetOrganizationTier', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());
  const setTier = (id: string, tier: string) => fixture.auth.setOrganizationTier({ id, tier }, fixture.asOperator());

  it('changes what the organization may use from the next request on', async () => {
    const { organizationId, asAdmin } = await fixture.withSecurityAdmin('starter');
    const { value: bearer } = await fixture.auth.createServerToken({ name: 'one' }, asAdmin());
    const run = async () => (await fixture.authenticate({ bearer, method: RUN_AGENT }))[0]!;
    expect(denialOf(await run())).toBe('TIER_REQUIRED');
    expect((await setTier(organizationId, 'professional')).organization!.tier).toBe('professional');
    expect((await run()).principal).toMatchObject({
      tier: 'professional',
      limits: {
        memory_types: 200,
        memory_objects: 1_000_000,
        memory_bytes: 53_687_091_200,
        execution_bytes: 53_687_091_200,
        server_tokens: 50,
      },
    });
    await setTier(organizationId, 'starter');
    expect(denialOf(await run())).toBe('TIER_REQUIRED');
  });

  it('rejects a tier that tiers.json does not have', async () => {
    const error = await expectError(setTier(await fixture.createOrganization(), 'platinum'), 'INVALID_REQUEST');
    expect(error.details[0]!.path).toBe('/tier');
  });

  it('rejects an unknown id with NOT_FOUND', () => expectError(setTier(newId(), 'starter'), 'NOT_FOUND'));
  it('rejects an empty id', () => expectError(setTier('', 'starter'), 'INVALID_REQUEST'));
});
