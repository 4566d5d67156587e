import { newId } from 'platform/core/ids.ts';
import { insert, remove } from 'platform/store/store.ts';
import { SECRETS } from '../src/secrets/store.ts';
import { startAgents, type Agents } from './fixture.ts';

describe('SetSecret', () => {
  let agents: Agents;
  beforeAll(async () => {
    agents = await startAgents();
  });
  afterAll(() => agents.service.stop());
  const set = (name: string, value: string, overlapSeconds = 0) =>
    agents.operate('setSecret', { name, value, overlapSeconds });
  const valuesAt = (name: string, ms: number) =>
    agents.deps().secrets.values(agents.organizationId, name, new Date(ms).toISOString());

  it('stores the value sealed, and answers without it', async () => {
    const reply = await set('signing', 'hunter2');
    expect(JSON.stringify(reply)).not.toContain('hunter2');
    expect(reply.secret).toMatchObject({ name: 'signing', previousUntil: undefined });
    const stored = JSON.stringify(await agents.deps().platformStore.find(SECRETS, {}));
    expect(stored).toContain('signing');
    for (const form of ['hunter2', Buffer.from('hunter2').toString('base64')]) expect(stored).not.toContain(form);
    expect(await valuesAt('signing', Date.now())).toEqual(['hunter2']);
  });

  it('a new value takes the place of the old one at once', async () => {
    await set('replaced', 'one');
    await set('replaced', 'two');
    expect(await valuesAt('replaced', Date.now())).toEqual(['two']);
  });

  it('with an overlap, both are valid until it ends', async () => {
    await set('rotated', 'one');
    const { secret } = await set('rotated', 'two', 3_600);
    const until = Date.parse(secret!.previousUntil!);
    expect(await valuesAt('rotated', until - 1)).toEqual(['two', 'one']);
    expect(await valuesAt('rotated', until)).toEqual(['two']);
    await set('rotated', 'three', 3_600);
    expect(await valuesAt('rotated', Date.now())).toEqual(['three', 'two']);
  });

  it('a sealed value opens for no other name and no other organization', async () => {
    await Promise.all([set('mine', 'a'), set('other', 'b')]);
    const { platformStore, secrets } = agents.deps();
    const [mine] = await platformStore.find(SECRETS, { name: 'mine' });
    const copied = { ...mine!, _id: newId(), name: 'copied' };
    const foreign = { ...mine!, _id: newId(), organizationId: newId() };
    for (const record of [copied, foreign]) {
      await platformStore.apply([insert(SECRETS, record)]);
      await expect(secrets.values(record.organizationId, record.name, new Date().toISOString())).rejects.toThrow();
    }
    await platformStore.apply([copied, foreign].map(({ _id }) => remove(SECRETS, { _id })));
  });

  it('of writers at the same time, each is applied, and the last one counts', async () => {
    const values = Array.from({ length: 8 }, (_, n) => `value-${n}`);
    await Promise.all(values.map((value) => set('raced', value)));
    expect(await valuesAt('raced', Date.now())).toEqual([expect.stringMatching(/^value-\d$/)]);
    expect((await agents.operate('listSecrets', {})).secrets.filter(({ name }) => name === 'raced')).toHaveLength(1);
  });

  it('writes an audit entry without the value', async () => {
    await set('audited', 'hunter3');
    const events = (await agents.events()).filter(({ data }) => data.action === 'secret.set');
    expect(events.at(-1)!.data).toMatchObject({
      target: { type: 'secret', id: 'audited' },
      actor: { kind: 'operator' },
    });
    expect(JSON.stringify(events)).not.toContain('hunter');
  });

  it.each([
    ['/name', '', 'x', 0],
    ['/name', '9lives', 'x', 0],
    ['/name', 'a b', 'x', 0],
    ['/name', 'n'.repeat(65), 'x', 0],
    ['/value', 'name', '', 0],
    ['/value', 'name', 'ä'.repeat(4_097), 0],
    ['/value', 'name', `whsec_${Buffer.alloc(32).toString('base64').slice(0, -1)}`, 0],
    ['/value', 'name', `whsec_${Buffer.alloc(32).toString('base64')}=`, 0],
    ['/value', 'name', 'whsec_hunter2', 0],
    ['/overlapSeconds', 'name', 'x', -1],
    ['/overlapSeconds', 'name', 'x', 31 * 86_400],
  ])('rejects what is wrong at %s', async (path, name, value, overlap) => {
    await expect(set(name, value, overlap)).rejects.toMatchObject({
      reason: 'INVALID_REQUEST',
      details: [{ path, message: expect.any(String) }],
    });
  });
});
