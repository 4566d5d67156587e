import { randomUUID } from 'node:crypto';
import { MongoClient, type Document } from 'mongodb';
import { ServiceError } from 'platform/core/errors.ts';
import { makeLog } from 'platform/core/log.ts';
import { openMongoStore } from 'platform/store/mongo/store.ts';
import { DuplicateKeyError, insert, remove, update, type Op, type OpenStore } from 'platform/store/store.ts';
import { startMongo, type PrivateServer } from '../../../dev-servers/src/private-server.ts';
import { lossyProxy, type LossyProxy } from './lossy-proxy.ts';
import { item, ITEMS, MESSAGES } from './store-suite.ts';

const TIMEOUT_MS = 3_000;
/** For what must succeed, on however busy a machine. */
const PATIENCE_MS = 20_000;
const log = makeLog('test', 'silent');
const UNAVAILABLE = { name: 'ServiceError', reason: 'UNAVAILABLE', headers: { 'Retry-After': '1' } };
const OUTCOME_UNKNOWN = { name: 'ServiceError', reason: 'OUTCOME_UNKNOWN' };

let server: PrivateServer;
let admin: MongoClient;
let database: string;
let opened: OpenStore;
let patient: OpenStore;
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
  [opened, patient] = await Promise.all([openStore(server.url), openStore(server.url, PATIENCE_MS)]);
  await patient.store.apply('A', [insert(ITEMS, item('1')), insert(ITEMS, item('8')), insert(ITEMS, item('9'))]);
});
afterEach(() => Promise.all([opened.close(), patient.close()]));

const more = update(ITEMS, { _id: '1' }, { increment: { rank: 1 } });
const alone = { insert: [insert(ITEMS, item('2'))], update: [more], delete: [remove(ITEMS, { _id: '1' })] };
const before = ['1:0', '8:0', '9:0'];
const after = { insert: ['1:0', '2:0', '8:0', '9:0'], update: ['1:1', '8:0', '9:0'], delete: ['8:0', '9:0'] };
/** A removal that expects nothing is a deleteMany, the other one a deleteOne. */
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
/** Up to its commit a fault meets the first command of its name. */
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
const applyPatiently = (ops: readonly Op[]) => patient.store.apply('A', ops);

/** By the store that has seen the fault; what it did unheard it meets again. */
async function insertUntilDone(id: string): Promise<void> {
  const giveUpAt = Date.now() + PATIENCE_MS;
  for (let unheard = false; ;) {
    const error: unknown = await apply([insert(ITEMS, item(id))]).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    if (error === undefined || (unheard && error instanceof DuplicateKeyError)) return;
    const passing = error instanceof ServiceError && ['UNAVAILABLE', 'OUTCOME_UNKNOWN'].includes(error.reason);
    if (!passing || Date.now() > giveUpAt) throw error;
    unheard ||= error.reason === 'OUTCOME_UNKNOWN';
  }
}

describe('a write whose connection closes', () => {
  it.each([...single, ...inBatch])('in $command, is done once', async ({ command, ops, done }) => {
    await withFailPoint({ failCommands: [command], closeConnection: true }, once, () => applyPatiently(ops));
    expect(await stored()).toEqual(done);
  });
  it.each(single)(
    'in $command again and again, has an unknown outcome, and is done at most once',
    async ({ command, ops, done }) => {
      await expect(
        withFailPoint({ failCommands: [command], closeConnection: true }, 'alwaysOn', () => apply(ops)),
      ).rejects.toMatchObject(OUTCOME_UNKNOWN);
      expect([before, done]).toContainEqual(await stored());
    },
  );
  it.each(inOpenBatch)('in $command of a transaction again and again, is not done', async ({ command, ops }) => {
    await expect(
      withFailPoint({ failCommands: [command], closeConnection: true }, 'alwaysOn', () => apply(ops)),
    ).rejects.toMatchObject(UNAVAILABLE);
    expect(await stored()).toEqual(before);
  });
  it('in its commit again and again, has an unknown outcome, and is done whole or not at all', async () => {
    await expect(
      withFailPoint({ failCommands: ['commitTransaction'], closeConnection: true }, 'alwaysOn', () => apply(batch)),
    ).rejects.toMatchObject(OUTCOME_UNKNOWN);
    expect([before, afterBatch]).toContainEqual(await stored());
  });
});

describe('a write to a server that is not primary', () => {
  const NOT_PRIMARY = { errorCode: 10107 };
  it.each([...single, ...inBatch])('any longer at $command, is done once', async ({ command, ops, done }) => {
    await withFailPoint(
      {
        failCommands: [command],
        ...NOT_PRIMARY,
        errorLabels: [
          command === 'commitTransaction' || ops.length === 1 ? 'RetryableWriteError' : 'TransientTransactionError',
        ],
      },
      once,
      () => applyPatiently(ops),
    );
    expect(await stored()).toEqual(done);
  });
  // a command alone is tried twice, a transaction until its time is up
  it.each([
    ...single.map((one) => ({ ...one, by: applyPatiently })),
    ...inOpenBatch.map((one) => ({ ...one, by: apply })),
  ])('and stays so at $command, is not done', async ({ command, ops, by }) => {
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

describe('a write whose majority is not confirmed', () => {
  it.each([...single, ...inCommit])(
    'in $command, is confirmed by a repeat and done once',
    async ({ command, ops, done }) => {
      const writeConcernError = { code: 91, errmsg: 'shutdown', errorLabels: ['RetryableWriteError'] };
      await withFailPoint(
        { failCommands: [command], writeConcernError, errorLabels: ['RetryableWriteError'] },
        once,
        () => applyPatiently(ops),
      );
      expect(await stored()).toEqual(done);
    },
  );
  it.each([...single, ...inCommit])(
    'in $command, for good, has an unknown outcome, and is done at most once',
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

  it.each([...single, ...inBatch])('in $command, was done once', async ({ command, ops, done }) => {
    await openThrough(PATIENCE_MS);
    proxy.loseAnswerTo(command, 1);
    await through.store.apply('A', ops);
    expect(proxy.lost()).toBe(1);
    expect(await stored()).toEqual(done);
  });
  it.each([...single, ...inCommit])(
    'in $command, and nobody answers later, has an unknown outcome: it was done',
    async ({ command, ops, done }) => {
      await openThrough();
      proxy.loseAnswerTo(command, 1);
      proxy.dieWithNext();
      // the last error of the driver says here only that no server was found
      await expect(through.store.apply('A', ops)).rejects.toMatchObject(OUTCOME_UNKNOWN);
      expect(await stored()).toEqual(done);
    },
  );
  it('before its commit, and nobody answers later, was not done', async () => {
    await openThrough();
    proxy.loseAnswerTo('update', 1);
    proxy.dieWithNext();
    await expect(through.store.apply('A', batch)).rejects.toMatchObject(UNAVAILABLE);
    expect(await stored()).toEqual(before);
  });
  // mongod remembers such writes, the stand-in forgets them and would increment twice
  const met = [...single.filter(({ command }) => command !== 'update'), ...inCommit];
  it.each(met)(
    'in $command, of a server that starts again and has forgotten it, has an unknown outcome, never that of a refusal: it was done once',
    async ({ command, ops, done }) => {
      await openThrough(PATIENCE_MS);
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
  const until = Date.now;
  async function within<T>(ms: number, work: Promise<T>): Promise<T> {
    const begun = until();
    try {
      return await work;
    } finally {
      expect(until() - begun).toBeLessThan(ms);
    }
  }
  const SLACK_MS = 5_000;

  it('is told from one that is gone: a write that was sent has an unknown outcome, reads and open transactions do not', async () => {
    await server.pause();
    try {
      // on a connection that its opening has left
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

  it('because it was killed, is unavailable in time, and the store goes on when it is back', async () => {
    await server.kill();
    // before the driver has missed it, a write may leave on a connection whose end nobody has noticed
    for (let missed = false; !missed;) {
      const error = await within(
        TIMEOUT_MS + SLACK_MS,
        opened.store.count('A', ITEMS, {}).catch((reason: unknown) => reason),
      );
      expect(error).toMatchObject(UNAVAILABLE);
      missed = ['MongoNetworkError', 'MongoServerSelectionError', 'TimedOutError'].includes(
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
  it('is given up, and holds its documents against nobody once the server answers again', async () => {
    await server.pause();
    try {
      // by the last of them the driver has given up to abort the first
      for (let round = 0; round < 6; round++) await expect(apply(batch)).rejects.toMatchObject(UNAVAILABLE);
    } finally {
      server.resume();
    }
    // the server reads their statements now; unended they would hold the document for a minute
    await Promise.all(Array.from({ length: 8 }, () => applyPatiently([more])));
    expect(await stored()).toEqual(['1:8', '8:0', '9:0']);
  });
});
