import { makeTurns, type Turns } from '../../../src/runtimes/network/turns.ts';

/** Takes turns, and notes whose have started. */
function taking(turns: Turns) {
  const { signal } = new AbortController();
  const started: string[] = [];
  const take = (organizationId: string) =>
    turns.take(organizationId, signal).then((end) => {
      started.push(organizationId);
      return end!;
    });
  return { started, take };
}

describe('turns', () => {
  it('an organization with 500 waiting runs does not hold up the first run of another one', async () => {
    const turns = makeTurns({ size: 4, limit: 1_000 });
    const { started, take } = taking(turns);
    const many = Array.from({ length: 500 }, () => take('many'));
    const end = await many[0]!;
    const endOther = await take('few');
    expect(started.filter((one) => one === 'many')).toHaveLength(4);
    expect(turns.waiting).toBe(496);
    endOther();
    end();
    await many[4];
    expect(turns.waiting).toBe(495);
  });

  it('where no further run may start, the other one comes next, however many wait', async () => {
    const turns = makeTurns({ size: 1, limit: 1_000 });
    const { started, take } = taking(turns);
    const many = Array.from({ length: 501 }, () => take('many'));
    const endSpare = await take('spare');
    const few = take('few');
    expect(turns.waiting).toBe(501);
    (await many[0]!)();
    await few;
    expect(started).toEqual(['many', 'spare', 'few']);
    endSpare();
    await many[1];
  });

  it('more runs than may wait are refused, those of the organization with the most of them', async () => {
    const turns = makeTurns({ size: 1, limit: 2 });
    const signal = new AbortController().signal;
    await turns.take('many', signal);
    const waiting = [turns.take('many', signal), turns.take('many', signal)];
    const few = [turns.take('few', signal), turns.take('few', signal)];
    expect(await few[0]).toEqual(expect.any(Function));
    await expect(waiting[1]).rejects.toMatchObject({ reason: 'QUEUE_FULL', headers: { 'Retry-After': '1' } });
  });

  it('a run that is cancelled leaves its place', async () => {
    const turns = makeTurns({ size: 1, limit: 2 });
    await turns.take('one', new AbortController().signal);
    const caller = new AbortController();
    const waiting = turns.take('one', caller.signal);
    expect(turns.waiting).toBe(1);
    caller.abort();
    expect(await waiting).toBeUndefined();
    expect(turns.waiting).toBe(0);
  });
});
