import { join } from 'node:path';
import { ServiceError } from 'platform/core/errors.ts';
import type { CloudEvent } from 'platform/events/bus.ts';
import { OUTBOX } from 'platform/events/outbox.ts';
import { flushDenials, makeDenials, type Denials } from 'platform/events/denials.ts';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import { remove, type OpenStore, type PlatformStore } from 'platform/store/store.ts';
import { temporaryFolder } from 'platform/service/testing.ts';

const denial = {
  organizationId: 'o1',
  actor: { kind: 'server_token', id: 't1', name: 'one', via: '' },
  code: 'forbidden',
  requestId: 'r1',
  time: '2030-01-01T00:00:10.000Z',
};
const outcomeUnknown = () => new ServiceError('OUTCOME_UNKNOWN');

describe('counted denials', () => {
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

  /** A store that fails with `error`, after it applied the batch or without. */
  const failing = (error: Error, applied: boolean): PlatformStore => ({
    ...open.platformStore,
    async apply(ops) {
      if (applied) await open.platformStore.apply(ops);
      throw error;
    },
  });
  const flush = (platformStore = open.platformStore) => flushDenials({ denials, platformStore, source: '/memory' });
  const note = (times: number, code = 'forbidden') => {
    for (let time = 0; time < times; time++) denials.note({ ...denial, code });
  };
  const rows = () => open.platformStore.find(OUTBOX, {}, { limit: 100 });
  const events = async () => (await rows()).map(({ event }) => JSON.parse(event) as CloudEvent);
  /** As consumers see them, who drop repeats by the event's id. */
  const entries = async () => {
    const byId = new Map((await events()).map(({ id, data }) => [id, data]));
    return Array.from(byId.values(), ({ code, count }) => [code, count]);
  };

  it.each([
    ['was', true],
    ['was not', false],
  ])(
    'are written once when the outcome of their batch is unknown several times and it %s written',
    async (_, applied) => {
      note(2);
      note(1, 'tier_required');
      await expect(flush(failing(outcomeUnknown(), applied))).rejects.toThrow(outcomeUnknown());
      note(3);
      await expect(flush(failing(outcomeUnknown(), false))).rejects.toThrow(outcomeUnknown());
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

  it('keep their ids when written again after the relay published them, so that consumers see a repeat', async () => {
    note(1);
    note(1, 'tier_required');
    await expect(flush(failing(outcomeUnknown(), true))).rejects.toThrow(outcomeUnknown());
    const before = await events();
    await open.platformStore.apply((await rows()).map(({ _id }) => remove(OUTBOX, { _id }, { optional: true })));
    await flush();
    expect(await events()).toEqual(before);
  });

  it('are counted further, as one entry, when their batch was not written', async () => {
    note(2);
    await expect(flush(failing(new ServiceError('UNAVAILABLE'), false))).rejects.toThrow('not available');
    note(3);
    expect(await flush()).toBe(1);
    expect(await entries()).toEqual([['forbidden', 5]]);
  });
});
