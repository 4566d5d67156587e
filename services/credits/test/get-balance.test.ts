import { newId } from 'platform/core/ids.ts';
import { startCredits } from './fixture.ts';

describe('get-balance', () => {
  const credits = startCredits();

  it('shows what is available, reserved, spent and granted', async () => {
    const organizationId = await credits.organizationWith(100);
    const agents = credits.agents(organizationId);
    const id = newId();
    await agents.reserve(id, 40);
    await agents.reserve(newId(), 7);
    await agents.settle(id, 30);
    expect(await agents.balance()).toEqual({
      availableMicros: 63,
      reservedMicros: 7,
      spentMicros: 30,
      grantedMicros: 100,
      openReservations: 1,
      sequence: 4,
    });
  });
  it('is all zeros for an organization without a grant', async () => {
    await credits.organizationWith(100);
    expect(await credits.agents(newId()).balance()).toEqual({
      availableMicros: 0,
      reservedMicros: 0,
      spentMicros: 0,
      grantedMicros: 0,
      openReservations: 0,
      sequence: 0,
    });
  });
});
