import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import { credentials, Server, ServerCredentials } from '@grpc/grpc-js';
import { JobServiceService } from 'proto/platform/v1/jobs.ts';
import { DAY_MS } from 'platform/core/clock.ts';
import { servicePrincipal } from 'platform/core/principal.ts';
import { CERTIFICATE_MS, issueCertificate, makeAuthority } from 'platform/rpc/certificates.ts';
import type { Log } from 'platform/core/log.ts';
import { openIdentity, type Identity } from 'platform/rpc/identity.ts';
import { createKeys, identityFilesOf, revokeOperator } from 'platform/rpc/keys.ts';
import { operator, OPERATOR, temporaryFolder } from 'platform/service/testing.ts';
import { closedInTheEnd, eventually } from 'platform/service/test-end.ts';
import { listJobsWith, openJobClient, startJobServer, type JobServer } from './job-server.ts';

const folder = temporaryFolder();
const keys = join(folder.path, 'keys');
const clock = { aheadMs: 0, now: () => Date.now() + clock.aheadMs };
const open = (name: string, given: object = {}): Identity =>
  openIdentity({ name, ...identityFilesOf(keys, name), clock, ...given });
const pem = (name: string): string => readFileSync(identityFilesOf(keys, name).certFile, 'utf8');
const ca = (): string => readFileSync(identityFilesOf(keys, OPERATOR).caFile, 'utf8');
const authorityIn = (text: string) => ({ certificate: new X509Certificate(text), key: createPrivateKey(text) });
const issue = (name: string, now: number, authority = readFileSync(join(keys, 'authority.pem'), 'utf8')) =>
  issueCertificate(authorityIn(authority), name, now);
const withContext = (options: SecureContextOptions) =>
  credentials.createFromSecureContext(createSecureContext({ ca: ca(), ...options }));

let memory: Identity;
let server: JobServer;
beforeAll(async () => {
  await createKeys(keys, ['gateway', 'memory', 'auth', OPERATOR, 'operator:eve']);
  memory = open('memory');
  server = await startJobServer(memory);
});
afterAll(async () => {
  await server.drain(1_000);
  memory.close();
  folder.remove();
});

describe('a server', () => {
  it('reads the name of its caller from the certificate, and believes no principal that this caller may not have', async () => {
    const ada = withContext({ cert: pem(OPERATOR), key: pem(OPERATOR) });
    expect(await listJobsWith(server.address, ada)).toBe('answered');
    expect(server.calls.at(-1)).toMatchObject({ caller: OPERATOR, principal: operator() });
    expect(await listJobsWith(server.address, ada, { ...operator(), subject: 'root', name: 'root' })).toBe(
      `${OPERATOR} may not call for this principal`,
    );
  });

  it('refuses the certificate of a service for a call that this service may not make', async () => {
    const gateway = withContext({ cert: pem('gateway'), key: pem('gateway') });
    expect(await listJobsWith(server.address, gateway, servicePrincipal('gateway'))).toBe(
      'This process may not call this method',
    );
    expect(await listJobsWith(server.address, gateway)).toBe('gateway may not call for this principal');
  });

  it.each<[string, () => Promise<SecureContextOptions>]>([
    ['without a certificate', async () => ({})],
    [
      'with a certificate of another authority',
      async () => {
        const own = await issue(OPERATOR, Date.now(), await makeAuthority(Date.now()));
        return { cert: own, key: own };
      },
    ],
    [
      'with a certificate that signed itself',
      async () => {
        const own = await makeAuthority(Date.now());
        return { cert: own, key: own };
      },
    ],
    [
      'with a certificate that was issued by the certificate of an operator',
      async () => {
        const own = await issue('gateway', Date.now(), pem(OPERATOR));
        return { cert: own + pem(OPERATOR), key: own };
      },
    ],
    [
      'whose certificate is past its end',
      async () => {
        const own = await issue(OPERATOR, Date.now() - CERTIFICATE_MS - 60_000);
        return { cert: own, key: own };
      },
    ],
    [
      'whose certificate is not valid yet',
      async () => {
        const own = await issue(OPERATOR, Date.now() + DAY_MS);
        return { cert: own, key: own };
      },
    ],
    ['of TLS 1.2', async () => ({ cert: pem(OPERATOR), key: pem(OPERATOR), maxVersion: 'TLSv1.2' })],
  ])('refuses a client %s, and answers its neighbour', async (_which, options) => {
    const { length } = server.calls;
    expect(await listJobsWith(server.address, withContext(await options()))).toMatch(/^No connection established/);
    expect(server.calls).toHaveLength(length);
    const valid = withContext({ cert: pem(OPERATOR), key: pem(OPERATOR) });
    expect(await listJobsWith(server.address, valid)).toBe('answered');
  });

  it('refuses a client without TLS', async () => {
    const { length } = server.calls;
    expect(await listJobsWith(server.address, credentials.createInsecure())).toMatch(/^No connection established/);
    expect(server.calls).toHaveLength(length);
  });

  it('takes a name for a certificate only if it is that of a process or operator', async () => {
    for (const name of ['nobody', 'operator', 'Memory']) {
      const own = await issue(name, Date.now());
      expect(await listJobsWith(server.address, withContext({ cert: own, key: own }))).toBe(
        'The caller has no valid certificate',
      );
    }
  });
});

describe('on an open connection', () => {
  it('an operator is refused from the call after the revocation, and others are answered', async () => {
    const [eve, ada] = [
      openJobClient(server.address, open('operator:eve')),
      openJobClient(server.address, open(OPERATOR)),
    ];
    const asEve = { ...operator(), subject: 'eve', name: 'eve' };
    await expect(eve.list(asEve)).resolves.toEqual({ jobs: [] });
    expect(revokeOperator(keys, 'operator:eve')).toBe(true);
    await expect(eve.list(asEve)).rejects.toMatchObject({
      reason: 'UNAUTHENTICATED',
      message: 'The certificate of operator:eve is revoked',
    });
    await expect(ada.list()).resolves.toEqual({ jobs: [] });
    eve.close();
    ada.close();
  });

  it('no operator is answered while the list of revoked operators cannot be read', async () => {
    const { revokedFile } = identityFilesOf(keys, OPERATOR);
    const ada = openJobClient(server.address, open(OPERATOR));
    const listed = readFileSync(revokedFile, 'utf8');
    rmSync(revokedFile);
    await expect(ada.list()).rejects.toMatchObject({ reason: 'UNAVAILABLE' });
    writeFileSync(revokedFile, listed);
    await expect(ada.list()).resolves.toEqual({ jobs: [] });
    ada.close();
  });

  it('a certificate that has come to its end is refused', async () => {
    const ada = openJobClient(server.address, open(OPERATOR));
    await expect(ada.list()).resolves.toEqual({ jobs: [] });
    clock.aheadMs = CERTIFICATE_MS + DAY_MS;
    await expect(ada.list()).rejects.toMatchObject({ reason: 'UNAUTHENTICATED' });
    clock.aheadMs = 0;
    await expect(ada.list()).resolves.toEqual({ jobs: [] });
    ada.close();
  });
});

describe('a client', () => {
  const failure = async (address: string, audience: string) => {
    const client = openJobClient(address, open(OPERATOR), audience);
    const error = (await client.list().catch((thrown: unknown) => thrown)) as Error;
    client.close();
    return { reason: (error as { reason?: string }).reason, cause: (error.cause as Error).message };
  };

  it('does not believe a process that has the certificate of another', async () => {
    const { length } = server.calls;
    expect(await failure(server.address, 'auth')).toEqual({
      reason: 'UNAVAILABLE',
      cause: expect.stringContaining('The certificate names memory, not auth') as string,
    });
    expect(server.calls).toHaveLength(length);
  });

  it.each<[string, () => Promise<ServerCredentials>]>([
    ['has no certificate', async () => ServerCredentials.createInsecure()],
    [
      'has a certificate of another authority',
      async () => {
        const own = Buffer.from(await issue('memory', Date.now(), await makeAuthority(Date.now())));
        return ServerCredentials.createSsl(null, [{ private_key: own, cert_chain: own }]);
      },
    ],
    [
      'has the certificate of an operator',
      async () => {
        const own = Buffer.from(pem(OPERATOR));
        return ServerCredentials.createSsl(null, [{ private_key: own, cert_chain: own }]);
      },
    ],
  ])('does not believe a process that %s', async (_which, serverCredentials) => {
    let asked = 0;
    const impostor = new Server();
    impostor.addService(JobServiceService, {
      listJobs: (_call: unknown, reply: (error: null, value: object) => void) => {
        asked += 1;
        reply(null, { jobs: [] });
      },
      runJob: () => undefined,
    });
    const tls = await serverCredentials();
    const port = await new Promise<number>((resolve, reject) =>
      impostor.bindAsync('127.0.0.1:0', tls, (error, bound) => (error ? reject(error) : resolve(bound))),
    );
    expect((await failure(`127.0.0.1:${port}`, 'memory')).reason).toBe('UNAVAILABLE');
    expect(asked).toBe(0);
    impostor.forceShutdown();
  });
});

it('a process whose certificate ends soon says so in its log, once a day', async () => {
  const warnings: unknown[] = [];
  const log = { warn: (...given: unknown[]) => warnings.push(given) } as unknown as Log;
  let looks = 0;
  let days = 0;
  const identity = open('auth', { log, clock: { now: () => (looks++, Date.now() + days * DAY_MS) } });
  closedInTheEnd(async () => identity.close());
  const warningsAfter = async (ahead: number) => {
    days = ahead;
    const before = looks;
    await eventually(() => looks > before + 1);
    return warnings.length;
  };
  expect(await warningsAfter(70)).toBe(0);
  expect(await warningsAfter(80)).toBe(1);
  expect(await warningsAfter(80.5)).toBe(1);
  expect(await warningsAfter(81.1)).toBe(2);
  expect(warnings[0]).toEqual([{ endsAt: expect.any(String) }, expect.stringContaining('keys create')]);
});

describe('a process does not start', () => {
  it.each<[string, (text: string) => string, RegExp]>([
    ['with the certificate of another', () => pem('auth'), /names auth/],
    [
      'with a key that is not that of its certificate',
      (text) => text.split('-----BEGIN PRIV')[0] + pem('auth').slice(pem('auth').indexOf('-----BEGIN PRIV')),
      /does not belong to its private key/,
    ],
    ['with a file that is no certificate', () => 'x', /cannot be read/],
  ])('%s', (_which, change, sentence) => {
    const file = join(folder.path, 'changed.pem');
    writeFileSync(file, change(pem('memory')));
    expect(() => open('memory', { certFile: file, keyFile: file })).toThrow(sentence);
  });

  it('without a certificate, and says how to make one', () => {
    expect(() => open('credits')).toThrow(/The certificate of credits is missing.*keys create/);
  });

  it('with a certificate that is past its end, and says how to make a new one', () => {
    clock.aheadMs = CERTIFICATE_MS + DAY_MS;
    expect(() => open('memory')).toThrow(/ended at .*keys rotate/);
    clock.aheadMs = 0;
  });
});
