import { newId } from 'platform/core/ids.ts';
import { startCredits } from './fixture.ts';

describe('settle', () => {
  let nowMs = Date.now();
  const credits = startCredits({ now: () => nowMs });

  it('charges once, gives the rest back, and gives every repeat the same answer', async () => {
    const agents = credits.agents(await credits.organizationWith(100));
    const id = newId();
    await agents.reserve(id, 40);
    const responses = await Promise.all(Array.from({ length: 8 }, () => agents.settle(id, 25)));
    expect(responses).toEqual(Array(8).fill({ state: 'SETTLED', chargedMicros: 25, shortfallMicros: 0 }));
    expect(await agents.balance()).toMatchObject({
      availableMicros: 75,
      reservedMicros: 0,
      spentMicros: 25,
      sequence: 3,
    });
  });
  it('after expiry charges what is available and records the shortfall: requested = charged + shortfall', async () => {
    const organizationId = await credits.organizationWith(100);
    const agents = credits.agents(organizationId);
    const id = newId();
    await agents.reserve(id, 40, { ttlMs: 1_000 });
    nowMs += 1_000;
    await agents.reserve(newId(), 90);
    expect(await agents.settle(id, 40)).toEqual({ state: 'SETTLED', chargedMicros: 10, shortfallMicros: 30 });
    expect((await credits.operator(organizationId).rows(1))[0]).toMatchObject({
      kind: 'LATE_SETTLE',
      spentDeltaMicros: 10,
      shortfallMicros: 30,
      availableMicros: 0,
    });
  });
  it('of an unknown reservation is NOT_FOUND', async () => {
    await expect(credits.agents(newId()).settle(newId(), 1)).rejects.toMatchObject({ reason: 'NOT_FOUND' });
  });
  it('rejects a wrong charge at /chargeMicros', async () => {
    await expect(credits.agents(newId()).settle(newId(), -1)).rejects.toMatchObject({
      reason: 'INVALID_REQUEST',
      details: [{ path: '/chargeMicros' }],
    });
  });
});
