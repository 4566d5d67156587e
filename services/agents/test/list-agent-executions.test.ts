import { newId, timeOfId } from 'platform/core/ids.ts';
import { serverToken } from 'platform/service/testing.ts';
import { update } from 'platform/store/store.ts';
import { EXECUTIONS } from '../src/executions/store.ts';
import { definitionOf, startAgents, type Agents } from './fixture.ts';

describe('ListAgentExecutions', () => {
  let agents: Agents;
  const ids: string[] = [];
  beforeAll(async () => {
    agents = await startAgents();
    await agents.publish(definitionOf('echo', '$'));
    await agents.publish(definitionOf('fails', '$error("no")'));
    for (let n = 0; n < 5; n++) ids.unshift((await agents.run('echo', n)).agentExecutionId);
    await agents.run('fails', {}).catch(() => undefined);
  });
  afterAll(() => agents.service.stop());
  const list = (request: Parameters<typeof agents.call<'listAgentExecutions'>>[1]) =>
    agents.call('listAgentExecutions', request);

  it('lists the newest first, without args, output and messages', async () => {
    const {
      items: [newest, ...rest],
      nextCursor,
    } = await list({});
    expect(newest).toMatchObject({
      agent: 'fails',
      agentVersion: 1,
      status: 'failed',
      actor: { kind: 'server_token', name: 'ci token' },
      charge: 0,
    });
    expect(JSON.parse(newest?.error ?? '')).toMatchObject({ code: 'agent_failed' });
    expect(rest.map(({ id }) => id)).toEqual(ids);
    expect(rest[0]).not.toHaveProperty('args');
    expect(nextCursor).toBeUndefined();
  });

  it('filters by agent and status together, and answers an empty page when nothing matches', async () => {
    expect((await list({ agent: 'echo', status: 'succeeded' })).items).toHaveLength(5);
    expect((await list({ status: 'failed' })).items).toHaveLength(1);
    expect(await list({ agent: 'missing' })).toEqual({ items: [], nextCursor: undefined });
  });

  it('pages without repeat or gap while new runs are recorded', async () => {
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await list({ agent: 'echo', pageSize: 2, cursor });
      seen.push(...page.items.map(({ id }) => id));
      cursor = page.nextCursor;
      if (seen.length === 2) await agents.run('echo', 'meanwhile');
    } while (cursor !== undefined);
    expect(seen).toEqual(ids);
  });

  it('lists a run from its createdAt on, and not before it', async () => {
    for (const { id, createdAt } of (await list({})).items) {
      expect(Date.parse(createdAt)).toBe(timeOfId(id));
      const idsOf = async (times: object) => (await list(times)).items.map((item) => item.id);
      expect([await idsOf({ since: createdAt }), await idsOf({ until: createdAt })]).toEqual([
        expect.arrayContaining([id]),
        expect.not.arrayContaining([id]),
      ]);
    }
  });

  it('lists a run whose status this release does not know, as after a rollback', async () => {
    const { platformStore } = agents.deps();
    const { agentExecutionId: id } = await agents.run('echo', 'later');
    await platformStore.apply([update(EXECUTIONS, { _id: id }, { set: { status: 'paused' as never } })]);
    for (const filter of [{}, { agent: 'echo' }])
      expect((await list({ ...filter, pageSize: 1 })).items).toMatchObject([{ id, status: 'paused' }]);
  });

  it.each([
    [{ status: 'done' }, '/status'],
    [{ pageSize: 0 }, '/pageSize'],
    [{ pageSize: 101 }, '/pageSize'],
    [{ cursor: 'xyz' }, '/cursor'],
    [{ cursor: '' }, '/cursor'],
    [{ cursor: Buffer.from(newId().toUpperCase()).toString('base64url') }, '/cursor'],
  ])('rejects %j', async (request, path) => {
    await expect(list(request)).rejects.toMatchObject({ reason: 'INVALID_REQUEST', details: [{ path }] });
  });

  it('shows no executions of another organization', async () => {
    expect((await agents.call('listAgentExecutions', {}, { principal: serverToken(newId()) })).items).toEqual([]);
  });
});
