import { Client, credentials, Metadata, type ServiceError as GrpcError } from '@grpc/grpc-js';
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SignJWT, UnsecuredJWT } from 'jose';
import { JobServiceService } from 'proto/platform/v1/jobs.ts';
import type { Principal } from 'platform/core/principal.ts';
import { followTime } from 'platform/core/clock.ts';
import { openIdentity, type Identity } from 'platform/rpc/identity.ts';
import { listJobs, runJob } from 'platform/jobs/job-service.ts';
import { createKeys, keyFileOf, peersFileOf, type Peers } from 'platform/rpc/keys.ts';
import { makeLog } from 'platform/core/log.ts';
import { Principal as PrincipalMessage, servicePrincipal } from 'platform/core/principal.ts';
import { bind } from 'platform/rpc/call.ts';
import { startServer } from 'platform/rpc/server.ts';
import { operator, principalWith, serverToken, temporaryFolder } from 'platform/service/testing.ts';

const folder = temporaryFolder();
const keys = join(folder.path, 'keys');
const clock = { ms: Date.now(), now: () => clock.ms };
const open = (name: string, keyFolder = keys): Identity =>
  openIdentity({ name, keyFile: keyFileOf(keyFolder, name), peersFile: peersFileOf(keys), clock });
const NAMES = ['gateway', 'memory', 'agents', 'operator:test'];
beforeAll(() => void createKeys(keys, NAMES));
afterAll(() => folder.remove());

const expectRejected = (assertion: string) =>
  expect(open('memory').verify(assertion)).rejects.toMatchObject({ reason: 'UNAUTHENTICATED' });

describe('an assertion', () => {
  it('names the calling process and the complete principal', async () => {
    const principal = serverToken('o1', { roles: ['a'], groups: ['b'], tier: 'starter', limits: { memory_types: 20 } });
    expect(await open('memory').verify(await open('gateway').sign('memory', principal))).toMatchObject({
      caller: 'gateway',
      principal,
    });
  });

  it('is reused, but only for the same principal and audience', async () => {
    const gateway = open('gateway');
    const one = serverToken('o1');
    const first = await gateway.sign('memory', one);
    expect(await gateway.sign('memory', { ...one })).toBe(first);
    expect(await gateway.sign('memory', { ...one, tier: 'starter' })).not.toBe(first);
    expect(await gateway.sign('agents', one)).not.toBe(first);
  });

  it('is rejected by another audience', async () =>
    expectRejected(await open('gateway').sign('agents', serverToken('o1'))));

  it('is rejected when its key is not in the file of public keys, whatever name it claims', async () => {
    const stranger = join(folder.path, 'stranger');
    createKeys(stranger, ['gateway', 'nobody']);
    await expectRejected(await open('gateway', stranger).sign('memory', serverToken('o1')));
    await expectRejected(await open('nobody', stranger).sign('memory', serverToken('o1')));
  });

  it.each(['', 'x', 'a.b.c', '{}'])('is rejected when it is %j', (assertion) => expectRejected(assertion));

  it('is rejected unsigned and when signed with another algorithm', async () => {
    const claims = { principal: Buffer.from(PrincipalMessage.encode(serverToken('o1')).finish()).toString('base64') };
    await expectRejected(
      new UnsecuredJWT(claims).setIssuer('gateway').setAudience('memory').setExpirationTime('1m').encode(),
    );
    const publicKey = (JSON.parse(readFileSync(peersFileOf(keys), 'utf8')) as Peers).gateway?.[0] as string;
    const header = (alg: string, typ: string) =>
      new SignJWT(claims)
        .setProtectedHeader({ alg, typ })
        .setIssuer('gateway')
        .setAudience('memory')
        .setExpirationTime('1m');
    await expectRejected(await header('HS256', 'assertion+jwt').sign(Buffer.from(publicKey)));
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    await expectRejected(await header('ES256', 'assertion+jwt').sign(privateKey));
  });

  it('is valid while clocks differ by ten minutes, but not for ever', async () => {
    const assertion = await open('gateway').sign('memory', serverToken('o1'));
    const memory = open('memory');
    for (const [afterMs, valid] of [
      [0, true],
      [10 * 60_000, true],
      [12 * 60_000, false],
    ] as const) {
      const before = clock.ms;
      clock.ms += afterMs;
      const verified = memory.verify(assertion);
      await (valid
        ? expect(verified).resolves.toMatchObject({ caller: 'gateway' })
        : expect(verified).rejects.toMatchObject({ reason: 'UNAUTHENTICATED' }));
      clock.ms = before;
    }
  });

  it.each<[string, string, Principal]>([
    ['an operator that is not its caller', 'operator:test', { ...operator(), subject: 'root', name: 'root' }],
    ['an operator under another name', 'operator:test', { ...operator(), name: 'root' }],
    ['an operator, but its caller a service', 'gateway', operator()],
    ['a server token, but its caller an operator', 'operator:test', serverToken('o1')],
    [
      'a user whose via does not name the calling operator',
      'operator:test',
      principalWith({ kind: 'USER', organizationId: 'o1', subject: 'u1' }),
    ],
    ['another service', 'gateway', servicePrincipal('agents', 'o1')],
    ['a service under another name', 'gateway', { ...servicePrincipal('gateway', 'o1'), name: 'agents' }],
    ['an operator, through whom another acts', 'operator:test', { ...operator(), via: 'root' }],
    ['a service, through which an operator acts', 'gateway', { ...servicePrincipal('gateway', 'o1'), via: 'root' }],
    ['a server token, through which an operator acts', 'gateway', serverToken('o1', { via: 'root' })],
    ['empty', 'gateway', principalWith({})],
  ])('is rejected when its principal is %s', async (_whom, caller, principal) =>
    expectRejected(await open(caller).sign('memory', principal)),
  );

  it('signed with the second key of a process is valid, so that keys can be rotated', async () => {
    const rotated = join(folder.path, 'rotated');
    createKeys(rotated, ['gateway']);
    const peers = JSON.parse(readFileSync(peersFileOf(keys), 'utf8')) as Peers;
    const [newer] = (JSON.parse(readFileSync(peersFileOf(rotated), 'utf8')) as Peers).gateway as [string];
    writeFileSync(peersFileOf(keys), JSON.stringify({ ...peers, gateway: [newer, ...(peers.gateway as string[])] }));
    for (const keyFolder of [keys, rotated]) {
      expect(
        await open('memory').verify(await open('gateway', keyFolder).sign('memory', serverToken('o1'))),
      ).toMatchObject({ caller: 'gateway' });
    }
  });
});

it("an identity uses the machine's clock, not the store's time", async () => {
  const identityOf = (name: string) =>
    openIdentity({ name, keyFile: keyFileOf(keys, name), peersFile: peersFileOf(keys) });
  const assertion = await identityOf('gateway').sign('memory', serverToken('o1'));
  await followTime(async () => Date.now() + 30 * 60_000);
  try {
    await expect(identityOf('memory').verify(assertion)).resolves.toMatchObject({ caller: 'gateway' });
  } finally {
    await followTime(async () => Date.now());
  }
});

describe('a process', () => {
  const call = (address: string, assertion?: string): Promise<string> =>
    new Promise((resolve) => {
      const metadata = new Metadata();
      if (assertion !== undefined) metadata.set('assertion', assertion);
      const client = new Client(address, credentials.createInsecure());
      const { path, requestSerialize, responseDeserialize } = JobServiceService.listJobs;
      client.makeUnaryRequest(path, requestSerialize, responseDeserialize, {}, metadata, (error: GrpcError | null) => {
        client.close();
        resolve(error ? error.details : 'answered');
      });
    });

  it('without a key can call nothing; with a key, only methods whose options name it as a caller', async () => {
    const runner = {
      list: () => [],
      runNow: async () => ({ ran: true, count: 0 }),
      runSoon: () => undefined,
      stop: async () => undefined,
    };
    const services = [bind(JobServiceService, runner, { listJobs, runJob })];
    const server = await startServer({
      listen: '127.0.0.1:0',
      identity: open('memory'),
      log: makeLog('memory', 'silent'),
      services,
    });
    expect(await call(server.address)).toBe('The call carries no valid identity');
    expect(await call(server.address, await open('gateway').sign('memory', servicePrincipal('gateway')))).toBe(
      'This process may not call this method',
    );
    expect(await call(server.address, await open('operator:test').sign('memory', operator()))).toBe('answered');
    await server.drain(1_000);
  });

  it('has a key file that only its owner can read', () => {
    for (const name of NAMES) expect(statSync(keyFileOf(keys, name)).mode & 0o077).toBe(0);
  });

  it('without a key fails to start with a sentence that says how to make one', () => {
    expect(() => open('credits')).toThrow(/keys create/);
  });
});
