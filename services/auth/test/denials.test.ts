import { makeDenials } from 'platform/events/denials.ts';
import { makeToken, SERVER_TOKEN } from 'platform/core/bearer-token.ts';
import { RUN_AGENT, startAuth, type AuthFixture } from './fixture.ts';

describe('denials in the audit trail', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());

  async function withToken(tier: string) {
    const { organizationId, asAdmin } = await fixture.withSecurityAdmin(tier);
    const { serverToken, value: bearer } = await fixture.auth.createServerToken({ name: 'denied' }, asAdmin());
    const denialEntries = async (count: number) =>
      (
        await fixture.auditTrail(
          organizationId,
          (actions) => actions.filter((action) => action === 'request.refused').length >= count,
        )
      ).filter(({ action }) => action === 'request.refused');
    return { organizationId, asAdmin, id: serverToken!.id, bearer, denialEntries };
  }

  it('are one entry with a count for each token and reason', async () => {
    const { asAdmin, id, bearer, denialEntries } = await withToken('starter');
    await fixture.authenticate(...Array(30).fill({ bearer, method: RUN_AGENT }));
    await fixture.auth.revokeServerToken({ idOrName: id }, asAdmin());
    await Promise.all(Array.from({ length: 20 }, () => fixture.authenticate({ bearer })));
    const entries = await denialEntries(2);
    expect(entries).toHaveLength(2);
    expect(entries).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          code: 'tier_required',
          count: 30,
          outcome: 'denied',
          actorKind: 'server_token',
          actorId: id,
          actorName: 'denied',
          targetType: 'method',
          targetId: RUN_AGENT,
        }),
        expect.objectContaining({
          code: 'unauthenticated',
          count: 20,
          outcome: 'denied',
          actorId: id,
          targetType: undefined,
          targetId: undefined,
        }),
      ]),
    );
  });

  it('name the methods that were refused, of which the first is the target', async () => {
    const { bearer, denialEntries } = await withToken('starter');
    const methods = [RUN_AGENT, '/agents.v1.AgentsService/ListRunnableAgents'];
    for (const method of [...methods, ...methods]) await fixture.authenticate({ bearer, method });
    expect(await denialEntries(1)).toMatchObject([
      { count: 4, targetId: RUN_AGENT, changes: [{ field: 'methods', before: [], after: methods }] },
    ]);
  });

  it('are written when the process stops', async () => {
    const { bearer, denialEntries } = await withToken('starter');
    await fixture.authenticate({ bearer, method: RUN_AGENT });
    await fixture.restart();
    expect((await denialEntries(1))[0]).toMatchObject({ code: 'tier_required', count: 1 });
  });

  it('do not include unknown tokens', async () => {
    const { organizationId } = await withToken('starter');
    await fixture.authenticate({ bearer: makeToken(SERVER_TOKEN) }, { bearer: 'nonsense' });
    expect((await fixture.running.runJob('denials')).count).toBe(0);
    expect((await fixture.auditTrail(organizationId)).every(({ action }) => action !== 'request.refused')).toBe(true);
  });
});

describe('denials in memory', () => {
  const actor = { kind: 'server_token', id: 't1', name: 'one', via: '' };
  const denial = { organizationId: 'o1', actor, code: 'forbidden', requestId: 'r1', time: '2030-01-01T00:00:10.000Z' };

  it('are counted together when organization, actor, action, code and minute are the same', () => {
    const denials = makeDenials();
    const others = [
      { organizationId: 'o2' },
      { actor: { ...actor, id: 't2' } },
      { action: 'agent.run' },
      { code: 'rate_limited' },
      { time: '2030-01-01T00:01:00.000Z' },
    ];
    for (const other of [{}, ...others, { requestId: 'r2', time: '2030-01-01T00:00:59.999Z' }])
      denials.note({ ...denial, ...other });
    expect(denials.drain()).toEqual([
      { ...denial, action: 'request.refused', count: 2 },
      ...others.map((other) => ({ ...denial, action: 'request.refused', count: 1, ...other })),
    ]);
  });

  const method = (id: string) => ({ ...denial, target: { type: 'method', id } });
  it('name up to ten methods, also when they are noted again, and then say that there were more', () => {
    const denials = makeDenials();
    for (const id of ['a', 'a']) denials.note(method(id));
    expect(denials.drain()).toEqual([{ ...method('a'), action: 'request.refused', count: 2 }]);
    for (const id of ['a', 'b', 'a']) denials.note(method(id));
    const [two] = denials.drain();
    expect(two).toMatchObject({ target: { id: 'a' }, methods: ['a', 'b'], count: 3 });
    for (const id of ['c', 'a']) denials.note(method(id));
    denials.note(two!);
    const [three] = denials.drain();
    expect(three).toMatchObject({ target: { id: 'c' }, methods: ['c', 'a', 'b'], count: 5 });
    for (let id = 0; id < 20; id++) denials.note(method(`m${id}`));
    denials.note(three!);
    const [all] = denials.drain();
    const ten = Array.from({ length: 10 }, (_, id) => `m${id}`);
    expect(all).toMatchObject({ methods: [...ten, '…'], count: 25 });
    denials.note(method('m0'));
    denials.note(all!);
    expect(denials.drain()).toMatchObject([{ methods: [...ten, '…'], count: 26 }]);
  });

  it('keep their count when they are noted again after a drain', () => {
    const denials = makeDenials();
    denials.note(denial);
    denials.note(denial);
    const [entry] = denials.drain();
    expect(denials.drain()).toEqual([]);
    denials.note(denial);
    denials.note(entry!);
    expect(denials.drain()[0]!.count).toBe(3);
  });
});
