import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Redis } from 'ioredis';
import pino from 'pino';
import { operator, OPERATOR, serverToken, startProgram, temporaryFolder } from 'platform/service/testing.ts';
import { CreditsServiceService } from 'proto/credits/v1/credits.ts';
import { newId } from 'platform/core/ids.ts';
import { makeLog } from 'platform/core/log.ts';
import { pause } from '../../../dev-servers/src/pause.ts';
import { freePort } from '../../../dev-servers/src/ports.ts';
import { openRedisConnection } from '../src/ledger/redis/connection.ts';
import { program } from '../src/service.ts';
import { organizationWith } from './ledger-harness.ts';
import { deleteKeys } from '../../../test/support/shared-engines.ts';
import { redisHarness, urlOf } from './redis-harness.ts';

const folder = temporaryFolder();
const servers: ChildProcess[] = [];
afterAll(async () => {
  for (const server of servers) {
    server.kill('SIGKILL');
    if (server.exitCode === null && server.signalCode === null) await once(server, 'exit');
  }
  folder.remove();
});

/** Starts a Redis server of this test's own. Resolves when it answers. */
async function serverWith(...options: string[]): Promise<{ port: number; server: ChildProcess }> {
  const port = await freePort();
  const server = spawn(
    'redis-server',
    [
      '--port',
      String(port),
      // Redis would take the port 10,000 above, which an outgoing connection may have.
      '--cluster-port',
      String(port + 1),
      '--bind',
      '127.0.0.1',
      '--dir',
      folder.path,
      '--appenddirname',
      `aof-${port}`,
      '--save',
      '',
      '--appendonly',
      'yes',
      '--appendfsync',
      'always',
      '--maxmemory-policy',
      'noeviction',
      ...options,
    ],
    { stdio: 'ignore' },
  );
  servers.push(server);
  const probe = new Redis(port, '127.0.0.1', { retryStrategy: () => 20, enableReadyCheck: false });
  probe.on('error', () => {});
  while (
    !(await probe.ping().then(
      () => true,
      (error: Error) => error.message.startsWith('NOAUTH'),
    ))
  )
    await delay(10);
  probe.disconnect();
  return { port, server };
}

const userAda = (...rights: string[]): string[] => ['--user', 'ada', 'on', '>secret-word', ...rights];

const startOn = async (url: string, settings: { unsafe?: 'allow'; timeoutMs?: number } = {}) => {
  const harness = await redisHarness(url, settings);
  await harness.stop();
};

describe('the ledger on Redis does not start', () => {
  it.each([
    ['without the password', ['--requirepass', 'secret-word'], '', 'rejects the credentials in REDIS_URL'],
    ['with a wrong password', ['--requirepass', 'secret-word'], ':wrong-word@', 'rejects the credentials in REDIS_URL'],
    ['with a wrong user', ['--requirepass', 'secret-word'], 'ada:wrong-word@', 'rejects the credentials in REDIS_URL'],
    [
      'as a user who may not run a command that the script needs',
      userAda('~*', '+@all', '-sadd'),
      'ada:secret-word@',
      'does not allow what the ledger needs: ',
    ],
    [
      'as a user who may not run scripts',
      userAda('~*', '+@all', '-evalsha'),
      'ada:secret-word@',
      'does not allow what the ledger needs: ',
    ],
    [
      'as a user who may not touch its keys',
      userAda('~other:*', '+@all'),
      'ada:secret-word@',
      'does not allow what the ledger needs: ',
    ],
    [
      'as a user who may only read',
      userAda('%R~*', '+@all'),
      'ada:secret-word@',
      'does not allow what the ledger needs: ',
    ],
    [
      'on a server without persistence',
      ['--appendonly', 'no'],
      '',
      'does not run with appendonly yes, so it may forget credits that it acknowledged; ' +
        'REDIS_UNSAFE=allow starts all the same',
    ],
    [
      'on a server that evicts',
      ['--maxmemory-policy', 'allkeys-lru'],
      '',
      'does not run with maxmemory-policy noeviction, so',
    ],
    [
      'on a node of a cluster',
      ['--cluster-enabled', 'yes', '--cluster-config-file', 'nodes.conf'],
      '',
      'is a node of a cluster',
    ],
  ])(
    '%s: the error is one sentence with the host and without the password',
    async (_, options, credentials, sentence) => {
      const { port } = await serverWith(...options);
      const error = await startOn(`redis://${credentials}127.0.0.1:${port}`).then(
        () => undefined,
        (reason: Error) => reason,
      );
      expect(error).toMatchObject({
        name: 'StartError',
        message: expect.stringContaining(`Redis at 127.0.0.1:${port} ${sentence}`),
      });
      expect(error!.message).not.toMatch(/word@|secret-word|\n/);
    },
  );

  it('where nothing answers', async () => {
    const port = await freePort();
    await expect(startOn(`redis://127.0.0.1:${port}`)).rejects.toMatchObject({
      name: 'StartError',
      message: expect.stringContaining(`Redis at 127.0.0.1:${port} cannot be reached: connect ECONNREFUSED`),
    });
  });
  it('where a server accepts connections and does not answer', async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => sockets.push(socket)).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as AddressInfo;
    await expect(startOn(`redis://127.0.0.1:${port}`, { timeoutMs: 2_000 })).rejects.toMatchObject({
      name: 'StartError',
      message: `Redis at 127.0.0.1:${port} does not answer`,
    });
    for (const socket of sockets) socket.destroy();
    silent.close();
  });
  it('on a server that is too old', async () => {
    const info = 'redis_version:6.2.14\r\nrole:master\r\nloading:0\r\n';
    const old = createServer((socket) =>
      socket.on('data', (data) => {
        for (const command of String(data).matchAll(/\*\d+\r\n\$\d+\r\n(\w+)\r\n/g))
          socket.write(command[1]!.toLowerCase() === 'info' ? `$${info.length}\r\n${info}\r\n` : '+OK\r\n');
      }),
    ).listen(0, '127.0.0.1');
    await once(old, 'listening');
    const { port } = old.address() as AddressInfo;
    await expect(startOn(`redis://127.0.0.1:${port}`)).rejects.toMatchObject({
      name: 'StartError',
      message: `Redis at 127.0.0.1:${port} is version 6.2.14; version 7 or newer is needed`,
    });
    old.close();
  });
  it('with another kind of URL', async () => {
    await expect(startOn('localhost:6379')).rejects.toMatchObject({
      name: 'StartError',
      message: expect.stringContaining('REDIS_URL must be redis://host:port'),
    });
  });
  it('without a place for its rows', async () => {
    await expect(startProgram(program, { REDIS_URL: 'redis://127.0.0.1:1' })).rejects.toMatchObject({
      name: 'StartError',
      message: 'REDIS_URL needs MONGODB_URL: the rows of the ledger go there',
    });
  });
});

describe('the ledger on Redis', () => {
  it('starts on an unsafe server with REDIS_UNSAFE=allow', async () => {
    const { port } = await serverWith('--appendonly', 'no');
    await startOn(`redis://127.0.0.1:${port}`, { unsafe: 'allow' });
  });

  it('works as a user who may use only its keys, and writes no key when it starts', async () => {
    const { port } = await serverWith(...userAda('~test-*', '+@all', '-@dangerous', '+info'));
    const harness = await redisHarness(`redis://ada:secret-word@127.0.0.1:${port}`);
    expect(await harness.redis.dbsize()).toBe(0);
    const organization = await organizationWith(harness, 100);
    expect(await organization.reserve(organization.freshId(), 1)).toMatchObject({ outcome: 'RESERVED' });
    await harness.stop();
  });

  it('takes its password from the URL', async () => {
    const { port } = await serverWith('--requirepass', 'secret-word');
    await startOn(`redis://:secret-word@127.0.0.1:${port}`);
  });

  it('writes nothing when the server is full, still reads, and writes again when there is room', async () => {
    const { port } = await serverWith();
    const harness = await redisHarness(`redis://127.0.0.1:${port}`);
    const organization = await organizationWith(harness, 100);
    const before = [await organization.balance(), await organization.rows()];
    await harness.redis.config('SET', 'maxmemory', '1');
    await expect(organization.reserve(organization.freshId(), 1)).rejects.toMatchObject({ reason: 'UNAVAILABLE' });
    expect([await organization.balance(), await organization.rows()]).toEqual(before);
    await harness.opened.mirroring!.mirror(organization.organizationId);
    await harness.redis.config('SET', 'maxmemory', '0');
    expect(await organization.reserve(organization.freshId(), 1)).toMatchObject({ outcome: 'RESERVED' });
    await harness.stop();
  });

  it('logs no argument of a call when the server is full', async () => {
    const { port } = await serverWith();
    const harness = await redisHarness(`redis://127.0.0.1:${port}`);
    const organization = await organizationWith(harness, 100);
    await harness.redis.config('SET', 'maxmemory', '1');
    const { cause } = await organization.grant(organization.freshId(), 987_654_321, 'a note to nobody').then(
      () => {
        throw new Error('it was granted');
      },
      (error: Error) => error,
    );
    let line = '';
    // as the gRPC server logs an error
    pino(
      { errorKey: 'error' },
      {
        write: (text) => {
          line += text;
        },
      },
    ).warn({ error: cause }, 'rejected');
    expect(JSON.parse(line).error.message).toMatch(/^OOM/);
    expect(line).not.toMatch(new RegExp(`a note to nobody|987654321|request-1|"args"|${organization.organizationId}`));
    await harness.stop();
  });

  it('answers OUTCOME_UNKNOWN to a change and UNAVAILABLE to a read in time while the server hangs', async () => {
    const { port, server } = await serverWith();
    const harness = await redisHarness(`redis://127.0.0.1:${port}`, { timeoutMs: 5_000 });
    const organization = await organizationWith(harness, 100);
    const [id, later] = [organization.freshId(), organization.freshId()];
    await pause(server.pid!);
    await expect(
      Promise.all([
        expect(organization.reserve(id, 10)).rejects.toMatchObject({ reason: 'OUTCOME_UNKNOWN' }),
        expect(organization.balance()).rejects.toMatchObject({
          reason: 'UNAVAILABLE',
          headers: { 'Retry-After': '1' },
        }),
      ]),
    ).resolves.toHaveLength(2);
    // once the connection is closed nothing is sent any more
    const reasonOf = () =>
      organization.reserve(later, 10).then(
        () => 'done',
        (error: { reason: string }) => error.reason,
      );
    let reason: string;
    while ((reason = await reasonOf()) === 'OUTCOME_UNKNOWN');
    expect(reason).toBe('UNAVAILABLE');
    server.kill('SIGCONT');
    while (
      await organization.balance().then(
        () => false,
        () => true,
      )
    );
    for (const one of [id, later])
      expect(await organization.reserve(one, 10)).toMatchObject({ outcome: 'RESERVED', state: 'OPEN' });
    expect(await organization.balances()).toEqual([80, 20, 0]);
    expect((await organization.rows()).map((row) => row.sequence)).toEqual([3, 2, 1]);
    await harness.stop();
  });

  it('frees the memory of calls that timed out', async () => {
    const { port, server } = await serverWith();
    const connection = await openRedisConnection({
      url: `redis://127.0.0.1:${port}`,
      keyPrefix: 'test',
      timeoutMs: 3_000,
      unsafe: 'refuse',
      log: makeLog('credits', 'silent'),
    });
    server.kill('SIGKILL');
    await once(server, 'exit');
    const reasons: WeakRef<Error>[] = [];
    for (let round = 0; round < 5; round++) {
      const calls = await Promise.allSettled(
        Array.from({ length: 100 }, () => connection.sendUntilAnswered(() => connection.command('PING'))),
      );
      for (const call of calls)
        if (call.status === 'rejected' && call.reason.reason === 'UNAVAILABLE')
          reasons.push(new WeakRef(call.reason.cause));
    }
    expect(reasons).toHaveLength(500);
    await new Promise(setImmediate);
    setFlagsFromString('--expose-gc');
    runInNewContext('gc')();
    expect(reasons.filter((reason) => reason.deref()).length).toBeLessThan(150);
    connection.close();
  });

  it('works as a service: grant, reserve and relay over gRPC, and a rebuild after Redis lost everything', async () => {
    const name = `t${newId().slice(-12)}`;
    const [REDIS_URL, MONGODB_URL] = [urlOf('REDIS_URL'), urlOf('MONGODB_URL')];
    const running = await startProgram(program, {
      REDIS_URL,
      MONGODB_URL,
      REDIS_KEY_PREFIX: name,
      MONGODB_DATABASE: name,
      RELAY_INTERVAL_MS: '3600000',
      SWEEP_INTERVAL_MS: '3600000',
    });
    const redis = new Redis(REDIS_URL);
    const organizationId = newId();
    const operators = running.client(CreditsServiceService, OPERATOR);
    const asOperator = () => running.as(operator(organizationId));
    const agents = running.client(CreditsServiceService, 'agents');
    const asToken = () => running.as(serverToken(organizationId));

    // waits for the first round after the start, so that it relays nothing of this test
    await running.runJob('relay');
    await operators.grant({ id: newId(), amountMicros: 100, note: 'welcome' }, asOperator());
    const id = newId();
    expect(await agents.reserve({ id, amountMicros: 40, ttlMs: 60_000, maxOpen: 1 }, asToken())).toMatchObject({
      outcome: 'RESERVED',
      state: 'OPEN',
      availableMicros: 60,
    });
    expect(await agents.reserve({ id: newId(), amountMicros: 1, ttlMs: 60_000, maxOpen: 1 }, asToken())).toMatchObject({
      outcome: 'TOO_MANY_OPEN',
      availableMicros: 60,
    });
    expect(await running.runJob('relay')).toEqual({ ran: true, count: 2 });
    await agents.settle({ id, chargeMicros: 30 }, asToken());
    expect(await running.runJob('mirror')).toEqual({ ran: true, count: 1 });
    const { account } = await agents.getBalance({}, asToken());

    await deleteKeys(redis, `${name}:*`);
    await expect(agents.getBalance({}, asToken())).rejects.toMatchObject({
      reason: 'UNAVAILABLE',
      message: expect.stringContaining('must be rebuilt'),
    });
    expect(await operators.rebuildLedger({}, asOperator())).toEqual({ account });
    expect(await agents.settle({ id, chargeMicros: 40 }, asToken())).toMatchObject({
      state: 'SETTLED',
      chargedMicros: 30,
    });
    expect(await running.runJob('relay')).toEqual({ ran: true, count: 1 });
    expect(
      (await operators.listLedgerRows({ pageSize: 0, beforeSequence: 0 }, asOperator())).rows.map((row) => row.kind),
    ).toEqual(['SETTLE', 'RESERVE', 'GRANT']);

    await running.stop();
    await deleteKeys(redis, `${name}:*`);
    redis.disconnect();
  });
});
