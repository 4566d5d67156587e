import { HOUR_MS } from 'platform/core/clock.ts';
import { newId } from 'platform/core/ids.ts';
import { startCredits } from './fixture.ts';

describe('extend', () => {
  let nowMs = Date.now();
  const credits = startCredits({ now: () => nowMs });

  it('keeps a reservation open beyond its first expiry, and does not reopen an expired one', async () => {
    const agents = credits.agents(await credits.organizationWith(10));
    const id = newId();
    await agents.reserve(id, 10, { ttlMs: 60_000 });
    nowMs += 59_000;
    expect(await agents.extend(id, 60_000)).toEqual({ state: 'OPEN' });
    nowMs += 59_000;
    expect(await agents.extend(id, 1_000)).toEqual({ state: 'OPEN' });
    nowMs += 1_000;
    expect(await agents.extend(id, HOUR_MS)).toEqual({ state: 'EXPIRED' });
  });
  it('of an unknown reservation is NOT_FOUND', async () => {
    await expect(credits.agents(newId()).extend(newId(), HOUR_MS)).rejects.toMatchObject({ reason: 'NOT_FOUND' });
  });
  it('rejects a wrong ttl at /ttlMs', async () => {
    await expect(credits.agents(newId()).extend(newId(), 999)).rejects.toMatchObject({
      reason: 'INVALID_REQUEST',
      details: [{ path: '/ttlMs' }],
    });
  });
});
