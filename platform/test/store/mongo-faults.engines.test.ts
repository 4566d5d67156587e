import { randomUUID } from 'node:crypto';
import { MongoClient, type Document } from 'mongodb';
import { ServiceError } from 'platform/core/errors.ts';
import { makeLog } from 'platform/core/log.ts';
import { openMongoStore } from 'platform/store/mongo/store.ts';
import { DuplicateKeyError, insert, remove, update, type Op, type OpenStore } from 'platform/store/store.ts';
import { startMongo, type PrivateServer } from '../../../dev-servers/src/private-server.ts';
import { within } from '../awake-time.ts';
import { lossyProxy, type LossyProxy } from './lossy-proxy.ts';
import { item, ITEMS, MESSAGES } from './store-suite.ts';

const TIMEOUT_MS = 3_000;
/** For operations that must succeed even on a busy machine. */
const LONG_TIMEOUT_MS = 20_000;
const log = makeLog('test', 'silent');
const UNAVAILABLE = { name: 'ServiceError', reason: 'UNAVAILABLE', headers: { 'Retry-After': '1' } };
const OUTCOME_UNKNOWN = { name: 'ServiceError', reason: 'OUTCOME_UNKNOWN' };

let server: PrivateServer;
let admin: MongoClient;
let database: string;
let opened: OpenStore;
let longTimeout: OpenStore;
const openStore = (url: string, timeoutMs = TIMEOUT_MS): Promise<OpenStore> =>
  openMongoStore({ url, database, poolMax: 10, timeoutMs, log }, [ITEMS, MESSAGES]);
const items = () => admin.db(database).collection<Document & { _id: string }>('items');
const stored = async () => (await items().find({}).sort({ _id: 1 }).toArray()).map(({ _id, rank }) => `${_id}:${rank}`);

beforeAll(async () => {
  server = await startMongo();
  admin = new MongoClient(server.url);
});
afterAll(async () => {
  await admin.close();
  await server.stop();
});
beforeEach(async () => {
  database = `faults-${randomUUID()}`;
  [opened, longTimeout] = await Promise.all([openStore(server.url), openStore(server.url, LONG_TIMEOUT_MS)]);
  await longTimeout.store.apply('A', [insert(ITEMS, item('1')), insert(ITEMS, item('8')), insert(ITEMS, item('9'))]);
});
afterEach(() => Promise.all([opened.close(), longTimeout.close()]));

const more = update(ITEMS, { _id: '1' }, { increment: { rank: 1 } });
const alone = { insert: [insert(ITEMS, item('2'))], update: [more], delete: [remove(ITEMS, { _id: '1' })] };
const before = ['1:0', '8:0', '9:0'];
const after = { insert: ['1:0', '2:0', '8:0', '9:0'], update: ['1:1', '8:0', '9:0'], delete: ['8:0', '9:0'] };
/** The optional removal is sent as a deleteMany, the other one as a deleteOne. */
const removals = [remove(ITEMS, { _id: '8' }, { optional: true }), remove(ITEMS, { _id: '9' })];
const batchWith = (last: readonly Op[]) => [
  more,
  insert(ITEMS, item('2')),
  insert(ITEMS, item('3')),
  insert(MESSAGES, { _id: randomUUID(), topic: 't' }),
  update(ITEMS, { _id: '3' }, { increment: { rank: 3 } }),
  ...last,
];
const batch = batchWith(removals);
const afterBatch = ['1:1', '2:0', '3:3'];
const single = Object.entries(alone).map(([command, ops]) => ({
  command,
  ops,
  done: after[command as keyof typeof after],
}));
/** Before the commit; a fail point affects the first command of its name. */
const inOpenBatch = [
  ...['insert', 'update', 'delete'].map((command) => ({ command, ops: batch })),
  { command: 'delete', ops: batchWith(removals.toReversed()) },
].map((each) => ({ ...each, done: afterBatch }));
const inCommit = [{ command: 'commitTransaction', ops: batch, done: afterBatch }];
const inBatch = [...inOpenBatch, ...inCommit];

async function withFailPoint<T>(
  failing: Document,
  mode: 'alwaysOn' | { times: number },
  work: () => Promise<T>,
): Promise<T> {
  const set = (to: unknown) =>
    admin.db('admin').command({ configureFailPoint: 'failCommand', mode: to, data: failing });
  await set(mode);
  try {
    return await work();
  } finally {
    await set('off');
  }
}
const once = { times: 1 };
const apply = (ops: readonly Op[]) => opened.store.apply('A', ops);
const applyWithLongTimeout = (ops: readonly Op[]) => longTimeout.store.apply('A', ops);

/**
 * Uses the store that saw the fault; a duplicate key after an unknown outcome means that an earlier attempt
 * succeeded.
 */
async function insertUntilDone(id: string): Promise<void> {
  const giveUpAt = Date.now() + LONG_TIMEOUT_MS;
  for (let outcomeUnknown = false; ;) {
    const error: unknown = await apply([insert(ITEMS, item(id))]).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    if (error === undefined || (outcomeUnknown && error instanceof DuplicateKeyError)) return;
    const temporary = error instanceof ServiceError && ['UNAVAILABLE', 'OUTCOME_UNKNOWN'].includes(error.reason);
    if (!temporary || Date.now() > giveUpAt) throw error;
    outcomeUnknown ||= error.reason === 'OUTCOME_UNKNOWN';
  }
}

describe('a write whose connection closes', () => {
  it.each([...single, ...inBatch])('during $command, is done once', async ({ command, ops, done }) => {
    await withFailPoint({ failCommands: [command], closeConnection: true }, once, () => applyWithLongTimeout(ops));
    expect(await stored()).toEqual(done);
  });
  it.each(single)(
    'during $command every time, has an unknown outcome and is done at most once',
    async ({ command, ops, done }) => {
      await expect(
        withFailPoint({ failCommands: [command], closeConnection: true }, 'alwaysOn', () => apply(ops)),
      ).rejects.toMatchObject(OUTCOME_UNKNOWN);
      expect([before, done]).toContainEqual(await stored());
    },
  );
  it.each(inOpenBatch)('during $command of a transaction every time, is not done', async ({ command, ops }) => {
    await expect(
      withFailPoint({ failCommands: [command], closeConnection: true }, 'alwaysOn', () => apply(ops)),
    ).rejects.toMatchObject(UNAVAILABLE);
    expect(await stored()).toEqual(before);
  });
  it('during its commit every time, has an unknown outcome and is done as a whole or not at all', async () => {
    await expect(
      withFailPoint({ failCommands: ['commitTransaction'], closeConnection: true }, 'alwaysOn', () => apply(batch)),
    ).rejects.toMatchObject(OUTCOME_UNKNOWN);
    expect([before, afterBatch]).toContainEqual(await stored());
  });
});

describe('a write to a server that is not primary', () => {
  const NOT_PRIMARY = { errorCode: 10107 };
  it.each([...single, ...inBatch])('any longer during $command, is done once', async ({ command, ops, done }) => {
    await withFailPoint(
      {
        failCommands: [command],
        ...NOT_PRIMARY,
        errorLabels: [
          command === 'commitTransaction' || ops.length === 1 ? 'RetryableWriteError' : 'TransientTransactionError',
        ],
      },
      once,
      () => applyWithLongTimeout(ops),
    );
    expect(await stored()).toEqual(done);
  });
  // The driver tries a single command twice, a transaction until its time is up.
  it.each([
    ...single.map((one) => ({ ...one, by: applyWithLongTimeout })),
    ...inOpenBatch.map((one) => ({ ...one, by: apply })),
  ])('and does not become primary during $command, is not done', async ({ command, ops, by }) => {
    await expect(
      withFailPoint(
        {
          failCommands: [command],
          ...NOT_PRIMARY,
          errorLabels: [ops.length === 1 ? 'RetryableWriteError' : 'TransientTransactionError'],
        },
        'alwaysOn',
        () => by(ops),
      ),
    ).rejects.toMatchObject(UNAVAILABLE);
    expect(await stored()).toEqual(before);
  });
});

describe('a write without confirmation by a majority', () => {
  it.each([...single, ...inCommit])(
    'of $command, is confirmed by a repeat and done once',
    async ({ command, ops, done }) => {
      const writeConcernError = { code: 91, errmsg: 'shutdown', errorLabels: ['RetryableWriteError'] };
      await withFailPoint(
        { failCommands: [command], writeConcernError, errorLabels: ['RetryableWriteError'] },
        once,
        () => applyWithLongTimeout(ops),
      );
      expect(await stored()).toEqual(done);
    },
  );
  it.each([...single, ...inCommit])(
    'of $command at any attempt, has an unknown outcome and is done at most once',
    async ({ command, ops, done }) => {
      await expect(
        withFailPoint(
          { failCommands: [command], writeConcernError: { code: 64, errmsg: 'waiting for replication timed out' } },
          'alwaysOn',
          () => apply(ops),
        ),
      ).rejects.toMatchObject(OUTCOME_UNKNOWN);
      expect([before, done]).toContainEqual(await stored());
    },
  );
});

describe('a write whose answer is lost', () => {
  let proxy: LossyProxy;
  let through: OpenStore;
  const openThrough = async (timeoutMs?: number): Promise<void> =>
    void (through = await openStore(`mongodb://127.0.0.1:${proxy.port}/?directConnection=true`, timeoutMs));
  beforeEach(async () => {
    proxy = await lossyProxy(server.port);
  });
  afterEach(async () => {
    await through.close();
    await proxy.close();
  });

  it.each([...single, ...inBatch])('during $command, is done once', async ({ command, ops, done }) => {
    await openThrough(LONG_TIMEOUT_MS);
    proxy.loseAnswerTo(command, 1);
    await through.store.apply('A', ops);
    expect(proxy.lost()).toBe(1);
    expect(await stored()).toEqual(done);
  });
  it.each([...single, ...inCommit])(
    'during $command, and nothing answers later, has an unknown outcome although it was done',
    async ({ command, ops, done }) => {
      await openThrough();
      proxy.loseAnswerTo(command, 1);
      proxy.stopAtNextLoss();
      // The driver's last error says only that no server was found.
      await expect(through.store.apply('A', ops)).rejects.toMatchObject(OUTCOME_UNKNOWN);
      expect(await stored()).toEqual(done);
    },
  );
  it('before its commit, and nothing answers later, is not done', async () => {
    await openThrough();
    proxy.loseAnswerTo('update', 1);
    proxy.stopAtNextLoss();
    await expect(through.store.apply('A', batch)).rejects.toMatchObject(UNAVAILABLE);
    expect(await stored()).toEqual(before);
  });
  // mongod remembers such writes. The stand-in that the tests run on forgets them and would increment twice.
  const conflictingWithThemselves = [...single.filter(({ command }) => command !== 'update'), ...inCommit];
  it.each(conflictingWithThemselves)(
    'during $command, of a server that restarts and has forgotten it, has an unknown outcome and is done once',
    async ({ command, ops, done }) => {
      await openThrough(LONG_TIMEOUT_MS);
      proxy.loseAnswerTo(command, 1, () => server.restart());
      const outcome = await through.store.apply('A', ops).catch((error: unknown) => error);
      expect(outcome).toMatchObject(OUTCOME_UNKNOWN);
      expect(proxy.lost()).toBe(1);
      expect(await stored()).toEqual(done);
    },
  );
});

describe('an index that takes longer than an operation may', () => {
  it('is waited for', async () => {
    await admin.db(database).dropDatabase();
    const slowly = { failCommands: ['createIndexes'], blockConnection: true, blockTimeMS: 2 * TIMEOUT_MS };
    await (await withFailPoint(slowly, once, () => openStore(server.url))).close();
    expect((await items().indexes()).map(({ name }) => name)).toContain('items(organizationId,group,key) unique');
  });
});

describe('a server that does not answer', () => {
  const SLACK_MS = 5_000;

  it('leaves the outcome of a write that was sent unknown; reads and open transactions are unavailable', async () => {
    await server.pause();
    try {
      // It is sent on the connection that is left from the opening of the store.
      await within(
        TIMEOUT_MS + SLACK_MS,
        expect(apply([insert(ITEMS, item('4'))])).rejects.toMatchObject(OUTCOME_UNKNOWN),
      );
      await Promise.all([
        within(TIMEOUT_MS + SLACK_MS, expect(opened.store.find('A', ITEMS, {})).rejects.toMatchObject(UNAVAILABLE)),
        within(TIMEOUT_MS + SLACK_MS, expect(opened.platformStore.now()).rejects.toMatchObject(UNAVAILABLE)),
        within(TIMEOUT_MS + SLACK_MS, expect(apply(batch)).rejects.toMatchObject(UNAVAILABLE)),
      ]);
    } finally {
      server.resume();
    }
    await insertUntilDone('5');
    expect([
      ['1:0', '5:0', '8:0', '9:0'],
      ['1:0', '4:0', '5:0', '8:0', '9:0'],
    ]).toContainEqual(await stored());
  });

  it('because it was killed, is unavailable within the time-out, and the store works again after a restart', async () => {
    await server.kill();
    // Until the driver notices, a write may be sent on a connection whose end nobody has noticed.
    for (let noticed = false; !noticed;) {
      const error = await within(
        TIMEOUT_MS + SLACK_MS,
        opened.store.count('A', ITEMS, {}).catch((reason: unknown) => reason),
      );
      expect(error).toMatchObject(UNAVAILABLE);
      noticed = ['MongoNetworkError', 'MongoServerSelectionError', 'TimedOutError'].includes(
        (error as { cause: Error }).cause.name,
      );
    }
    await within(TIMEOUT_MS + SLACK_MS, expect(apply([insert(ITEMS, item('2'))])).rejects.toMatchObject(UNAVAILABLE));
    await within(TIMEOUT_MS + SLACK_MS, expect(apply(batch)).rejects.toMatchObject(UNAVAILABLE));
    await server.restart();
    await insertUntilDone('6');
    expect(await stored()).toEqual(['1:0', '6:0', '8:0', '9:0']);
  });
});

describe('a batch whose server does not answer for a while', () => {
  it('is given up, and blocks no other writer once the server answers again', async () => {
    await server.pause();
    try {
      // By the last attempt the driver no longer tries to abort the first transaction.
      for (let round = 0; round < 6; round++) await expect(apply(batch)).rejects.toMatchObject(UNAVAILABLE);
    } finally {
      server.resume();
    }
    // The server receives their commands now. Unless they are ended they block the document for a minute.
    await Promise.all(Array.from({ length: 8 }, () => applyWithLongTimeout([more])));
    expect(await stored()).toEqual(['1:8', '8:0', '9:0']);
  });
});
