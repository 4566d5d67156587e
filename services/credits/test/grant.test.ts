import { newId } from 'platform/core/ids.ts';
import { startCredits } from './fixture.ts';

describe('grant', () => {
  const credits = startCredits();

  it('adds to the account once, however often it is repeated', async () => {
    const organizationId = newId();
    const id = newId();
    const first = await credits.operator(organizationId).grant(id, 1_000_000, 'welcome');
    expect(first).toEqual({
      account: {
        availableMicros: 1_000_000,
        reservedMicros: 0,
        spentMicros: 0,
        grantedMicros: 1_000_000,
        openReservations: 0,
        sequence: 1,
      },
    });
    expect(await credits.operator(organizationId).grant(id, 1_000_000)).toEqual(first);
  });
  it('with a known id and another amount is a CONFLICT', async () => {
    const organizationId = newId();
    const id = newId();
    await credits.operator(organizationId).grant(id, 5);
    await expect(credits.operator(organizationId).grant(id, 6)).rejects.toMatchObject({ reason: 'CONFLICT' });
  });
  it.each([
    ['/amountMicros', newId(), 0],
    ['/amountMicros', newId(), -5],
    ['/id', 'me', 5],
  ])('rejects a wrong value at %s', async (path, id, amountMicros) => {
    await expect(credits.operator(newId()).grant(id, amountMicros)).rejects.toMatchObject({
      reason: 'INVALID_REQUEST',
      details: [{ path }],
    });
  });
  it('is for operators only', async () => {
    const { client, options } = credits.agents(newId());
    await expect(client.grant({ id: newId(), amountMicros: 5, note: '' }, options())).rejects.toMatchObject({
      reason: 'FORBIDDEN',
    });
  });
});
