import { newId } from 'platform/core/ids.ts';
import { startCredits } from './fixture.ts';

describe('list-ledger-rows', () => {
  const credits = startCredits();

  it('lists every change with its author, balances and time, newest first', async () => {
    const organizationId = newId();
    const [grant, run] = [newId(), newId()];
    await credits.operator(organizationId).grant(grant, 100, 'welcome');
    await credits.agents(organizationId).reserve(run, 40);
    await credits.agents(organizationId).settle(run, 25);
    const rows = await credits.operator(organizationId).rows();
    const nothing = {
      availableDeltaMicros: 0,
      reservedDeltaMicros: 0,
      spentDeltaMicros: 0,
      grantedDeltaMicros: 0,
      shortfallMicros: 0,
      note: '',
      createdAt: expect.stringMatching(/^\d{4}-.*Z$/),
    };
    expect(rows).toEqual([
      {
        ...nothing,
        sequence: 3,
        kind: 'SETTLE',
        id: run,
        availableDeltaMicros: 15,
        reservedDeltaMicros: -40,
        spentDeltaMicros: 25,
        availableMicros: 75,
        reservedMicros: 0,
        actor: 'server_token:pipeline',
      },
      {
        ...nothing,
        sequence: 2,
        kind: 'RESERVE',
        id: run,
        availableDeltaMicros: -40,
        reservedDeltaMicros: 40,
        availableMicros: 60,
        reservedMicros: 40,
        actor: 'server_token:pipeline',
      },
      {
        ...nothing,
        sequence: 1,
        kind: 'GRANT',
        id: grant,
        availableDeltaMicros: 100,
        grantedDeltaMicros: 100,
        availableMicros: 100,
        reservedMicros: 0,
        actor: 'operator:test',
        note: 'welcome',
      },
    ]);
  });
  it('pages by sequence, 20 rows by default', async () => {
    const organizationId = await credits.organizationWith(100);
    for (let i = 0; i < 24; i++) await credits.agents(organizationId).reserve(newId(), 1);
    const { rows } = credits.operator(organizationId);
    expect((await rows()).map((row) => row.sequence)).toEqual(Array.from({ length: 20 }, (_, i) => 25 - i));
    expect((await rows(3, 6)).map((row) => row.sequence)).toEqual([5, 4, 3]);
    expect(await rows(3, 1)).toEqual([]);
  });
  it('shows an organization its own rows only', async () => {
    await credits.organizationWith(100);
    expect(await credits.operator(newId()).rows()).toEqual([]);
  });
  it.each([
    [1001, 0, '/pageSize'],
    [-1, 0, '/pageSize'],
    [1, -1, '/beforeSequence'],
  ])('rejects a page of %i rows before %i at %s', async (pageSize, beforeSequence, path) => {
    await expect(credits.operator(newId()).rows(pageSize, beforeSequence)).rejects.toMatchObject({
      reason: 'INVALID_REQUEST',
      details: [{ path }],
    });
  });
});
