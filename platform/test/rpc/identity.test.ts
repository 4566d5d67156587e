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

const refused = (assertion: string) =>
  expect(open('memory').verify(assertion)).rejects.toMatchObject({ reason: 'UNAUTHENTICATED' });

describe('an assertion', () => {
  it('tells its audience who calls and for whom, whole', async () => {
    const principal = serverToken('o1', { roles: ['a'], groups: ['b'], tier: 'starter', limits: { memory_types: 20 } });
    expect(await open('memory').verify(await open('gateway').sign('memory', principal))).toMatchObject({
      caller: 'gateway',
      principal,
    });
  });

  it('is made once per principal, audience and half minute', async () => {
    const gateway = open('gateway');
    const one = serverToken('o1');
    const first = await gateway.sign('memory', one);
    expect(await gateway.sign('memory', { ...one })).toBe(first);
    expect(await gateway.sign('memory', { ...one, tier: 'starter' })).not.toBe(first);
    expect(await gateway.sign('agents', one)).not.toBe(first);
  });

  it('is refused by another audience', async () => refused(await open('gateway').sign('agents', serverToken('o1'))));

  it('is refused when the peers do not know its key, whatever name it gives', async () => {
    const stranger = join(folder.path, 'stranger');
    createKeys(stranger, ['gateway', 'nobody']);
    await refused(await open('gateway', stranger).sign('memory', serverToken('o1')));
    await refused(await open('nobody', stranger).sign('memory', serverToken('o1')));
  });

  it.each(['', 'x', 'a.b.c', '{}'])('is refused when it is %j', (assertion) => refused(assertion));

  it('is refused unsigned, signed by another algorithm, and of another type', async () => {
    const claims = { principal: Buffer.from(PrincipalMessage.encode(serverToken('o1')).finish()).toString('base64') };
    await refused(new UnsecuredJWT(claims).setIssuer('gateway').setAudience('memory').setExpirationTime('1m').encode());
    const publicKey = (JSON.parse(readFileSync(peersFileOf(keys), 'utf8')) as Peers).gateway?.[0] as string;
    const header = (alg: string, typ: string) =>
      new SignJWT(claims)
        .setProtectedHeader({ alg, typ })
        .setIssuer('gateway')
        .setAudience('memory')
        .setExpirationTime('1m');
    await refused(await header('HS256', 'assertion+jwt').sign(Buffer.from(publicKey)));
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    await refused(await header('ES256', 'assertion+jwt').sign(privateKey));
  });

  it('holds while clocks are ten minutes apart, and not for ever', async () => {
    const assertion = await open('gateway').sign('memory', serverToken('o1'));
    const memory = open('memory');
    for (const [afterMs, holds] of [
      [0, true],
      [10 * 60_000, true],
      [12 * 60_000, false],
    ] as const) {
      const before = clock.ms;
      clock.ms += afterMs;
      const verified = memory.verify(assertion);
      await (holds
        ? expect(verified).resolves.toMatchObject({ caller: 'gateway' })
        : expect(verified).rejects.toMatchObject({ reason: 'UNAUTHENTICATED' }));
      clock.ms = before;
    }
  });

  it.each<[string, string, Principal]>([
    ['an operator that is not its caller', 'operator:test', { ...operator(), subject: 'root', name: 'root' }],
    ['an operator by another name', 'operator:test', { ...operator(), name: 'root' }],
    ['an operator, by a service', 'gateway', operator()],
    ['a server token, by an operator', 'operator:test', serverToken('o1')],
    [
      'a user without saying through whom',
      'operator:test',
      principalWith({ kind: 'USER', organizationId: 'o1', subject: 'u1' }),
    ],
    ["another service's job", 'gateway', servicePrincipal('agents', 'o1')],
    ['nobody', 'gateway', principalWith({})],
  ])('is refused when it is for %s', async (_whom, caller, principal) =>
    refused(await open(caller).sign('memory', principal)),
  );

  it('of the second key of a name holds, so that keys can be rotated', async () => {
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

it('an identity goes by the clock of its machine, not by the time of a store', async () => {
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

  it('without a key can call nothing; one with a key only what its methods name it for', async () => {
    const runner = {
      list: () => [],
      runNow: async () => ({ ran: true, count: 0 }),
      poke: () => undefined,
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

  it('keeps its key for itself', () => {
    for (const name of NAMES) expect(statSync(keyFileOf(keys, name)).mode & 0o077).toBe(0);
  });

  it('is told in one sentence that it has no key', () => {
    expect(() => open('credits')).toThrow(/keys create/);
  });
});
