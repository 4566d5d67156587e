import { newId } from 'platform/core/ids.ts';
import { startCredits } from './fixture.ts';

describe('reserve', () => {
  const credits = startCredits();

  it('opens exactly ten reservations when thirty ask at once for a tenth of the balance each', async () => {
    const agents = credits.agents(await credits.organizationWith(100));
    const responses = await Promise.all(Array.from({ length: 30 }, () => agents.reserve(newId(), 10)));
    expect(responses.filter((response) => response.outcome === 'RESERVED')).toHaveLength(10);
    expect(responses.filter((response) => response.outcome === 'INSUFFICIENT')).toHaveLength(20);
    expect(await agents.balance()).toMatchObject({
      availableMicros: 0,
      reservedMicros: 100,
      openReservations: 10,
      sequence: 11,
    });
  });
  it('answers a repeat with the present state, and with ENDED after the reservation has ended', async () => {
    const agents = credits.agents(await credits.organizationWith(100));
    const id = newId();
    expect(await agents.reserve(id, 10)).toEqual({ outcome: 'RESERVED', state: 'OPEN', availableMicros: 90 });
    expect(await agents.reserve(id, 10)).toEqual({ outcome: 'RESERVED', state: 'OPEN', availableMicros: 90 });
    await agents.settle(id, 1);
    expect(await agents.reserve(id, 10)).toEqual({ outcome: 'ENDED', state: 'SETTLED', availableMicros: 99 });
    await expect(agents.reserve(id, 11)).rejects.toMatchObject({ reason: 'CONFLICT' });
  });
  it('returns what is available when that is not enough, and checks the limit of open reservations first', async () => {
    const agents = credits.agents(await credits.organizationWith(100));
    await agents.reserve(newId(), 0);
    expect(await agents.reserve(newId(), 101, { maxOpen: 2 })).toEqual({
      outcome: 'INSUFFICIENT',
      state: 'RESERVATION_STATE_UNSPECIFIED',
      availableMicros: 100,
    });
    expect(await agents.reserve(newId(), 101, { maxOpen: 1 })).toMatchObject({
      outcome: 'TOO_MANY_OPEN',
      availableMicros: 100,
    });
  });
  it("belongs to the caller's organization: the same id elsewhere is another reservation", async () => {
    const [one, other] = [
      credits.agents(await credits.organizationWith(10)),
      credits.agents(await credits.organizationWith(10)),
    ];
    const id = newId();
    await one.reserve(id, 10);
    expect(await other.reserve(id, 4)).toMatchObject({ outcome: 'RESERVED', availableMicros: 6 });
  });
  it.each([
    ['/ttlMs', newId(), { ttlMs: 0 }],
    ['/maxOpen', newId(), { maxOpen: -1 }],
    ['/id', '', {}],
    ['/id', '01000000-0000-7000-8000-000000000000', {}],
  ])('rejects a wrong value at %s', async (path, id, options) => {
    await expect(credits.agents(newId()).reserve(id, 1, options)).rejects.toMatchObject({
      reason: 'INVALID_REQUEST',
      details: [{ path }],
    });
  });
  it('is for the agents service only', async () => {
    const { client, options } = credits.operator(newId());
    await expect(
      client.reserve({ id: newId(), amountMicros: 1, ttlMs: 1_000, maxOpen: 0 }, options()),
    ).rejects.toMatchObject({ reason: 'FORBIDDEN' });
  });
});
