import { newId } from 'platform/core/ids.ts';
import { denialOf, expectError, LIST_TYPES, RUN_AGENT, startAuth, type AuthFixture } from './fixture.ts';

const HOUR_MS = 3_600_000;

describe('RotateServerToken', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());
  const denied = async (bearer: string) => denialOf((await fixture.authenticate({ bearer }))[0]!);

  it('gives a new value under the same name; the old one ends with the overlap', async () => {
    const { organizationId, asAdmin } = await fixture.withSecurityAdmin();
    const old = await fixture.auth.createServerToken({ name: 'CI' }, asAdmin());
    expect(await denied(old.value)).toBeUndefined();
    const id = newId();
    const rotated = await fixture.auth.rotateServerToken({ idOrName: 'ci', overlapSeconds: 3600, id }, asAdmin());
    expect(rotated.serverToken).toMatchObject({ id, name: 'CI', lastUsedAt: undefined, expiresAt: undefined });
    expect(rotated.previous).toMatchObject({
      id: old.serverToken!.id,
      expiresAt: new Date(fixture.clock.now() + HOUR_MS).toISOString(),
      lastUsedAt: new Date(fixture.clock.now()).toISOString(),
    });
    expect([await denied(old.value), await denied(rotated.value)]).toEqual([undefined, undefined]);
    const again = { idOrName: old.serverToken!.id, overlapSeconds: 0 };
    await expectError(fixture.auth.rotateServerToken(again, asAdmin()), 'NOT_FOUND');
    await expectError(
      fixture.auth.rotateServerToken({ idOrName: 'CI', overlapSeconds: 0, id }, asAdmin()),
      'ALREADY_EXISTS',
    );
    const trail = await fixture.auditTrail(organizationId, (actions) => actions.includes('server_token.rotate'));
    expect(trail.find(({ action }) => action === 'server_token.rotate')!.targetId).toBe(old.serverToken!.id);

    fixture.clock.advance(HOUR_MS);
    expect([await denied(old.value), await denied(rotated.value)]).toEqual(['UNAUTHENTICATED', undefined]);
  });

  it('keeps the scopes and the address ranges', async () => {
    const { asAdmin } = await fixture.withSecurityAdmin();
    const restrictions = { scopes: ['memory:read'], addressRanges: ['203.0.113.0/24'] };
    await fixture.auth.createServerToken({ name: 'CI', restrictions }, asAdmin());
    const { serverToken, value } = await fixture.auth.rotateServerToken(
      { idOrName: 'CI', overlapSeconds: 60 },
      asAdmin(),
    );
    expect(serverToken).toMatchObject(restrictions);
    const decide = async (address: string, method: string) =>
      denialOf((await fixture.authenticate({ bearer: value, address, method }))[0]!);
    expect(await decide('203.0.113.9', LIST_TYPES)).toBeUndefined();
    expect(await decide('198.51.100.1', LIST_TYPES)).toBe('FORBIDDEN');
    expect(await decide('203.0.113.9', RUN_AGENT)).toBe('FORBIDDEN');
  });

  it('revokes the old value at once without an overlap', async () => {
    const { asAdmin } = await fixture.withSecurityAdmin();
    const old = await fixture.auth.createServerToken({ name: 'CI' }, asAdmin());
    const { value } = await fixture.auth.rotateServerToken({ idOrName: 'CI', overlapSeconds: 0 }, asAdmin());
    expect([await denied(old.value), await denied(value)]).toEqual(['UNAUTHENTICATED', undefined]);
  });

  it('exceeds the limit of the tier by one token at most', async () => {
    const { asAdmin } = await fixture.withSecurityAdmin('starter');
    for (let i = 0; i < 5; i++) await fixture.auth.createServerToken({ name: `token ${i}` }, asAdmin());
    const rotate = (overlapSeconds: number) =>
      fixture.auth.rotateServerToken({ idOrName: 'token 0', overlapSeconds }, asAdmin());
    await rotate(60);
    expect((await expectError(rotate(60), 'TIER_LIMIT')).facts).toEqual({ limit: 'server_tokens' });
    await rotate(0);
  });

  it('does not let the old token outlive its own expiry, and is for live tokens of the organization', async () => {
    const [{ asAdmin }, other] = [await fixture.withSecurityAdmin(), await fixture.withSecurityAdmin()];
    const expiresAt = new Date(fixture.clock.now() + 1_000).toISOString();
    await fixture.auth.createServerToken({ name: 'short', expiresAt }, asAdmin());
    const request = { idOrName: 'short', overlapSeconds: 60 };
    const { serverToken, previous } = await fixture.auth.rotateServerToken(request, asAdmin());
    expect([serverToken!.expiresAt, previous!.expiresAt]).toEqual([expiresAt, expiresAt]);
    await expectError(fixture.auth.rotateServerToken(request, other.asAdmin()), 'NOT_FOUND');
    fixture.clock.advance(1_000);
    await expectError(fixture.auth.rotateServerToken(request, asAdmin()), 'NOT_FOUND');
  });

  it.each([-1, 2_592_001])('rejects an overlap of %d seconds', async (overlapSeconds) => {
    const { asAdmin } = await fixture.withSecurityAdmin();
    await expectError(fixture.auth.rotateServerToken({ idOrName: 'CI', overlapSeconds }, asAdmin()), 'INVALID_REQUEST');
  });
});
