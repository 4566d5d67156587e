import { newId } from 'platform/core/ids.ts';
import { startCredits } from './fixture.ts';

describe('release', () => {
  const credits = startCredits();

  it('gives the whole amount back once', async () => {
    const agents = credits.agents(await credits.organizationWith(100));
    const id = newId();
    await agents.reserve(id, 40);
    expect(await Promise.all([agents.release(id), agents.release(id)])).toEqual([
      { state: 'RELEASED' },
      { state: 'RELEASED' },
    ]);
    expect(await agents.balance()).toMatchObject({ availableMicros: 100, reservedMicros: 0, sequence: 3 });
    expect(await agents.settle(id, 40)).toEqual({ state: 'RELEASED', chargedMicros: 0, shortfallMicros: 0 });
  });
  it('of an unknown id makes a reserve that arrives later ENDED', async () => {
    const agents = credits.agents(await credits.organizationWith(100));
    const id = newId();
    expect(await agents.release(id)).toEqual({ state: 'RELEASED' });
    expect(await agents.reserve(id, 40)).toEqual({ outcome: 'ENDED', state: 'RELEASED', availableMicros: 100 });
  });
  it('rejects a wrong id at /id', async () => {
    await expect(credits.agents(newId()).release('x')).rejects.toMatchObject({
      reason: 'INVALID_REQUEST',
      details: [{ path: '/id' }],
    });
  });
});
