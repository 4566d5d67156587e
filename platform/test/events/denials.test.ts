import { join } from 'node:path';
import { ServiceError } from 'platform/core/errors.ts';
import { OUTBOX } from 'platform/events/outbox.ts';
import { flushDenials, makeDenials, type Denials } from 'platform/events/denials.ts';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import { remove, type OpenStore, type PlatformStore } from 'platform/store/store.ts';
import { temporaryFolder } from 'platform/service/testing.ts';

const refusal = {
  organizationId: 'o1',
  actor: { kind: 'server_token', id: 't1', name: 'one', via: '' },
  code: 'forbidden',
  requestId: 'r1',
  time: '2030-01-01T00:00:10.000Z',
};
const unknown = () => new ServiceError('OUTCOME_UNKNOWN');

describe('denials on their way to the audit trail', () => {
  const folder = temporaryFolder();
  let open: OpenStore;
  let denials: Denials;
  let stores = 0;
  beforeEach(async () => {
    open = await openSqliteStore(join(folder.path, `${++stores}.sqlite`), [OUTBOX]);
    denials = makeDenials();
  });
  afterEach(() => open.close());
  afterAll(() => folder.remove());

  /** A store that applies a batch, or does not, and then fails. */
  const failing = (error: Error, done: boolean): PlatformStore => ({
    ...open.platformStore,
    async apply(ops) {
      if (done) await open.platformStore.apply(ops);
      throw error;
    },
  });
  const flush = (platformStore = open.platformStore) => flushDenials({ denials, platformStore, source: '/memory' });
  const note = (times: number, code = 'forbidden') => {
    for (let time = 0; time < times; time++) denials.note({ ...refusal, code });
  };
  const rows = () => open.platformStore.find(OUTBOX, {}, { limit: 100 });
  const entries = async () =>
    (await rows()).map(({ event }) => JSON.parse(event).data).map(({ code, count }) => [code, count]);

  it.each([
    ['was', true],
    ['was not', false],
  ])(
    'are told once when it is unknown whether their batch was written, and it %s, however often',
    async (_which, done) => {
      note(2);
      note(1, 'tier_required');
      await expect(flush(failing(unknown(), done))).rejects.toThrow(unknown());
      note(3);
      await expect(flush(failing(unknown(), false))).rejects.toThrow(unknown());
      await expect(flush(failing(new ServiceError('UNAVAILABLE'), false))).rejects.toThrow('not available');
      expect(await flush()).toBe(3);
      expect(await entries()).toEqual([
        ['forbidden', 2],
        ['tier_required', 1],
        ['forbidden', 3],
      ]);
      expect(await flush()).toBe(0);
      expect(await entries()).toHaveLength(3);
    },
  );

  it('keep their ids when the relay has taken one away before they are written again: who reads them knows a repeat', async () => {
    note(1);
    note(1, 'tier_required');
    await expect(flush(failing(unknown(), true))).rejects.toThrow(unknown());
    const before = await rows();
    await open.platformStore.apply(before.map(({ _id }) => remove(OUTBOX, { _id })));
    await flush();
    expect(await rows()).toEqual(before);
  });

  it('are counted on, as one entry, when their batch was certainly not written', async () => {
    note(2);
    await expect(flush(failing(new ServiceError('UNAVAILABLE'), false))).rejects.toThrow('not available');
    note(3);
    expect(await flush()).toBe(1);
    expect(await entries()).toEqual([['forbidden', 5]]);
  });
});
