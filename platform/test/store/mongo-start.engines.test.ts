import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { MongoClient } from 'mongodb';
import { makeLog } from 'platform/core/log.ts';
import { openMongoStore } from 'platform/store/mongo/store.ts';
import { collection, insert, type Collection, type OpenStore } from 'platform/store/store.ts';
import { freePort } from '../../../dev-servers/src/ports.ts';
import { startMongo, type PrivateServer } from '../../../dev-servers/src/private-server.ts';
import { within } from '../awake-time.ts';
import { oldMongo } from './old-mongo.ts';
import { item, ITEMS } from './store-suite.ts';

const url = process.env.MONGODB_URL;
if (!url) throw new Error('set MONGODB_URL; npm run engines -- up prints it');
const log = makeLog('test', 'silent');
const database = `start-${randomUUID()}`;
const open = (at: string, collections: readonly unknown[] = [ITEMS], name = database): Promise<OpenStore> =>
  openMongoStore({ url: at, database: name, poolMax: 5, timeoutMs: 60_000, log }, collections as Collection<never>[]);

async function startError(opening: Promise<OpenStore>): Promise<string> {
  const error = await within(
    20_000,
    opening.then(
      async (store) => {
        await store.close();
        throw new Error('it opened');
      },
      (reason: unknown) => reason as Error,
    ),
  );
  expect(error).toMatchObject({ name: 'StartError' });
  expect(error.message).not.toMatch(/\n|secret-password/);
  return error.message;
}

describe('a store that cannot use its MongoDB says so in one sentence', () => {
  let locked: PrivateServer;
  const as = (user: string, password = 'secret-password') =>
    `mongodb://${user}:${password}@127.0.0.1:${locked.port}/?replicaSet=secantus`;
  beforeAll(async () => {
    locked = await startMongo({
      users: [
        { createUser: 'app', pwd: 'secret-password', roles: [{ role: 'readWrite', db: database }] },
        { createUser: 'other', pwd: 'secret-password', roles: [{ role: 'readWrite', db: 'other' }] },
        { createUser: 'reader', pwd: 'secret-password', roles: [{ role: 'read', db: database }] },
      ],
    });
  });
  afterAll(() => locked.stop());

  it('but opens when the user may write its database', async () => {
    await (await open(as('app'))).close();
  });
  it('when the password is wrong', async () => {
    expect(await startError(open(as('app', 'secret-password-x')))).toBe(
      `MongoDB at 127.0.0.1:${locked.port} rejects the user name or password in MONGODB_URL`,
    );
  });
  it.each(['other', 'reader'])('when the user is %s, who may not write its database', async (user) => {
    expect(await startError(open(as(user)))).toMatch(
      /^MongoDB at 127\.0\.0\.1:\d+ does not allow what the service needs: readWrite on /,
    );
  });
  it.each(['insert', 'update', 'delete', 'find'])('when the user may do everything except %s', async (command) => {
    const server = await startMongo();
    const admin = new MongoClient(server.url);
    try {
      await admin.db('admin').command({
        configureFailPoint: 'failCommand',
        mode: 'alwaysOn',
        data: { failCommands: [command], errorCode: 13 },
      });
      expect(await startError(open(server.url))).toBe(
        `MongoDB at 127.0.0.1:${server.port} does not allow what the service needs: readWrite on ${database}`,
      );
    } finally {
      await admin.close();
      await server.stop();
    }
  });
  it('and leaves no document behind when it opens, also when several open at once', async () => {
    const name = `probe-${randomUUID()}`;
    const stores = await Promise.all([1, 2, 3, 4].map(() => open(url, [ITEMS], name)));
    expect(await stores[0]!.platformStore.count(ITEMS, {})).toBe(0);
    await Promise.all(stores.map((store) => store.close()));
  });
  it('when it asks for credentials and there are none', async () => {
    expect(await startError(open(locked.url))).toMatch(
      /^MongoDB at 127\.0\.0\.1:\d+ does not allow what the service needs: readWrite on /,
    );
  });
  it('when nothing listens there', async () => {
    const port = await freePort();
    expect(await startError(open(`mongodb://app:secret-password@127.0.0.1:${port}/`))).toBe(
      `MongoDB at 127.0.0.1:${port} cannot be reached: connect ECONNREFUSED 127.0.0.1:${port}`,
    );
  });
  it('when the server accepts the connection and does not answer', async () => {
    const mute = createServer().listen(0, '127.0.0.1');
    await once(mute, 'listening');
    const { port } = mute.address() as AddressInfo;
    expect(await startError(open(`mongodb://127.0.0.1:${port}/`))).toBe(`MongoDB at 127.0.0.1:${port} does not answer`);
    mute.close();
  });
  it('when the host name cannot be resolved', async () => {
    expect(await startError(open('mongodb://no-such-host.invalid:27017/'))).toMatch(
      /^MongoDB at no-such-host\.invalid:27017 cannot be reached: getaddrinfo /,
    );
  });
  it('when it is a standalone server', async () => {
    const standalone = await startMongo({ args: ['--standalone'] });
    try {
      expect(await startError(open(`mongodb://127.0.0.1:${standalone.port}/`))).toMatch(
        /is a standalone server, and transactions need a replica set or a sharded cluster/,
      );
      expect(await startError(open(`mongodb://127.0.0.1:${standalone.port}/?replicaSet=rs0`))).toMatch(
        /is no member of the replica set rs0 that MONGODB_URL names$/,
      );
    } finally {
      await standalone.stop();
    }
  });
  it('when it belongs to another replica set', async () => {
    expect(await startError(open(`mongodb://127.0.0.1:${locked.port}/?replicaSet=rs0`))).toBe(
      `MongoDB at 127.0.0.1:${locked.port} is no member of the replica set rs0 that MONGODB_URL names`,
    );
  });
  it('when it is too old', async () => {
    const old = await oldMongo(8);
    expect(await startError(open(old.url))).toMatch(
      /^MongoDB at 127\.0\.0\.1:\d+ is too old: it speaks wire version 8, needed is at least 9 \(MongoDB 4\.4\)$/,
    );
    old.close();
  });
  it.each([
    ['mongodb://app:secret-password@', 'MONGODB_URL cannot be used: it is no mongodb://host:port/?replicaSet=name'],
    [
      'mongodb://app:secret-password@h/?retriWrites=1',
      /^MONGODB_URL cannot be used: option retriwrites is not supported$/i,
    ],
  ])('when its URL is %s', async (bad, message) => {
    expect(await startError(open(bad))).toMatch(message);
  });
});

describe('indexes on MongoDB', () => {
  type D = { _id: string; organizationId: string; a: string; b: number };
  const D = collection<D>('d', {
    scope: 'organization',
    indexes: [{ fields: ['a'], unique: true }, { fields: ['b'] }, { fields: ['_id'] }],
    platformIndexes: [{ fields: ['b'] }],
  });
  const admin = new MongoClient(url);
  let name: string;
  const raw = () => admin.db(name).collection<{ _id: string }>('d');
  const indexNames = async () => (await raw().indexes()).map((index) => index.name).sort();
  beforeEach(() => {
    name = `indexes-${randomUUID()}`;
  });
  afterAll(() => admin.close());

  it('are made as declared, and one that is not declared stays', async () => {
    await raw().createIndex({ z: 1 }, { name: 'of an older release' });
    await (await open(url, [D], name)).close();
    await (await open(url, [D], name)).close();
    expect(await indexNames()).toEqual([
      '_id_',
      'd(b,_id)',
      'd(organizationId,_id)',
      'd(organizationId,a) unique',
      'd(organizationId,b,_id)',
      'of an older release',
    ]);
  });
  it('are one more where a field has few values, for queries that do not ask for it', async () => {
    const few = collection<{ _id: string; organizationId: string; a: string; b: string }>('d', {
      scope: 'organization',
      indexes: [{ fields: ['a', 'b'], few: true }],
    });
    await (await open(url, [few], name)).close();
    expect(await indexNames()).toEqual(['_id_', 'd(organizationId,a,_id)', 'd(organizationId,a,b,_id)']);
  });
  it('are made once when four stores open at the same moment', async () => {
    const stores = await Promise.all([1, 2, 3, 4].map(() => open(url, [D, ITEMS], name)));
    await Promise.all(stores.map((store) => store.close()));
    expect(await indexNames()).toHaveLength(5);
  });
  it('that should be unique and are not make the start fail with their name', async () => {
    await raw().createIndex({ organizationId: 1, a: 1 }, { name: 'd(organizationId,a) unique' });
    expect(await startError(open(url, [D], name))).toBe(
      `MongoDB has an index in place of "d(organizationId,a) unique" in the database ${name} ` +
        'that is defined otherwise: drop it and start again',
    );
  });
  it('that cannot be unique because of equal values make the start fail with their name', async () => {
    await raw().insertMany(['1', '2'].map((_id) => ({ _id, organizationId: 'A', a: 'same' })));
    expect(await startError(open(url, [D], name))).toBe(
      `MongoDB cannot make the index "d(organizationId,a) unique" in the database ${name}: documents there have equal values`,
    );
  });
});

describe('a store on MongoDB', () => {
  it('finishes what was started before it closes and rejects what comes later', async () => {
    const { store, close } = await open(url);
    const begun = store.apply('A', [insert(ITEMS, item('1')), insert(ITEMS, item('2'))]);
    await close();
    await begun;
    await expect(store.count('A', ITEMS, {})).rejects.toMatchObject({ reason: 'UNAVAILABLE' });
    const again = await open(url);
    expect(await again.store.count('A', ITEMS, {})).toBe(2);
    await again.close();
  });
});
