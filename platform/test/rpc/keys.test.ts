import { X509Certificate } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DAY_MS } from 'platform/core/clock.ts';
import { CERTIFICATE_MS } from 'platform/rpc/certificates.ts';
import { certificatesIn, openIdentity } from 'platform/rpc/identity.ts';
import {
  createKeys,
  finishRotation,
  identityFilesOf,
  masterKeyFileOf,
  revokeOperator,
  rotateKeys,
} from 'platform/rpc/keys.ts';
import { OPERATOR, temporaryFolder } from 'platform/service/testing.ts';
import { eventually } from 'platform/service/test-end.ts';
import { openJobClient, startJobServer } from './job-server.ts';

const NAMES = ['gateway', 'memory', OPERATOR];
const temporary = temporaryFolder();
afterAll(() => temporary.remove());
let made = 0;
const newFolder = (): string => join(temporary.path, `keys-${(made += 1)}`);
const certificateOf = (folder: string, name: string) =>
  new X509Certificate(readFileSync(identityFilesOf(folder, name).certFile));
const authoritiesOf = (folder: string): string[] =>
  certificatesIn(readFileSync(identityFilesOf(folder, 'memory').caFile, 'utf8')).map(({ subject }) => subject);
const open = (folder: string, name: string) => openIdentity({ name, ...identityFilesOf(folder, name) });

describe('keys create', () => {
  it('makes an authority and a certificate for each name, in files that only their owner can read', async () => {
    const folder = newFolder();
    expect(await createKeys(folder, NAMES)).toEqual({ issued: NAMES, missedMasterKey: false, removed: [] });
    for (const file of readdirSync(folder))
      expect([file, statSync(join(folder, file)).mode & 0o777]).toEqual([file, 0o600]);
    expect(NAMES.map((name) => certificateOf(folder, name).subjectAltName)).toEqual([
      'DNS:gateway',
      'DNS:memory',
      'URI:operator:test',
    ]);
    expect(await createKeys(folder, NAMES)).toEqual({ issued: [], missedMasterKey: false, removed: [] });
  });

  it('says that there was no master key, unless everything is new', async () => {
    const folder = newFolder();
    await createKeys(folder, NAMES);
    const lost = readFileSync(masterKeyFileOf(folder), 'utf8');
    rmSync(masterKeyFileOf(folder));
    expect(await createKeys(folder, NAMES)).toEqual({ issued: [], missedMasterKey: true, removed: [] });
    expect(readFileSync(masterKeyFileOf(folder), 'utf8')).not.toBe(lost);
  });

  it('makes one authority, however often it runs at the same time', async () => {
    const folder = newFolder();
    await Promise.all(Array.from({ length: 5 }, () => createKeys(folder, NAMES)));
    expect(authoritiesOf(folder)).toHaveLength(2);
    for (const name of NAMES) expect(authoritiesOf(folder)).toContain(certificateOf(folder, name).issuer);
    expect(readdirSync(folder).filter((file) => file.endsWith('.new'))).toEqual([]);
  });

  it('takes an operator name of any characters', async () => {
    const folder = newFolder();
    const name = 'operator:Ä DNS:memory, b';
    await createKeys(folder, [name, 'memory']);
    expect(open(folder, name).name).toBe(name);
  });

  it('renews a certificate 30 days before its end, and the authority a year before its own', async () => {
    const folder = newFolder();
    await createKeys(folder, NAMES);
    const before = certificateOf(folder, 'memory');
    const authorities = authoritiesOf(folder);
    expect(before.validToDate.getTime() - Date.now()).toBeGreaterThan(CERTIFICATE_MS - DAY_MS);
    expect(await createKeys(folder, NAMES, Date.now() + 59 * DAY_MS)).toEqual({
      issued: [],
      missedMasterKey: false,
      removed: [],
    });
    expect((await createKeys(folder, ['memory'], Date.now() + 61 * DAY_MS)).issued.sort()).toEqual([...NAMES].sort());
    expect(certificateOf(folder, 'memory').issuer).toBe(before.issuer);
    expect(authoritiesOf(folder)).toEqual(authorities);
    await createKeys(folder, NAMES, Date.now() + 3_300 * DAY_MS);
    expect(certificateOf(folder, 'memory').issuer).toBe(authorities[1]);
  });

  it('makes no other authority where only its certificate is, as in a cluster', async () => {
    const folder = newFolder();
    await createKeys(folder, NAMES);
    for (const file of ['authority.pem', 'next-authority.pem']) rmSync(join(folder, file));
    expect(await createKeys(folder, NAMES)).toEqual({ issued: [], missedMasterKey: false, removed: [] });
    await expect(createKeys(folder, ['auth'])).rejects.toThrow(/The key of the authority is not in/);
    expect(existsSync(join(folder, 'authority.pem'))).toBe(false);
  });

  it('replaces the signing keys of the release before, also those of other operators', async () => {
    const folder = newFolder();
    await createKeys(folder, ['memory']);
    const old = ['memory.key', 'operator-ada.key', 'peers.json'];
    for (const file of old) writeFileSync(join(folder, file), '{"memory":[],"operator:ada":[]}');
    const { issued, removed } = await createKeys(folder, ['memory', 'gateway']);
    expect(issued).toEqual(['gateway', 'operator:ada']);
    expect(removed.map((file) => file.slice(folder.length + 1))).toEqual(old);
    expect(readdirSync(folder).filter((file) => old.includes(file))).toEqual([]);
    expect(open(folder, 'operator:ada').name).toBe('operator:ada');
  });
});

describe('keys rotate', () => {
  it('renews all certificates under load without a failed call, and then what was before is refused', async () => {
    const folder = newFolder();
    await createKeys(folder, NAMES);
    const before = { cert: readFileSync(identityFilesOf(folder, OPERATOR).certFile), copy: join(folder, 'copy') };
    writeFileSync(before.copy, before.cert, { mode: 0o600 });
    const memory = open(folder, 'memory');
    const server = await startJobServer(memory);
    const clients = (['streams', 'unary calls'] as const).map((carriedBy) =>
      openJobClient(server.address, open(folder, OPERATOR), 'memory', carriedBy),
    );
    const openBefore = () =>
      openIdentity({
        name: OPERATOR,
        ...identityFilesOf(folder, OPERATOR),
        certFile: before.copy,
        keyFile: before.copy,
      });
    const left = openJobClient(server.address, openBefore());
    let [stopped, answered] = [false, 0];
    const load = (async () => {
      while (!stopped) {
        await Promise.all(clients.flatMap((client) => Array.from({ length: 8 }, () => client.list())));
        await left.list();
        answered += 1;
      }
    })();
    const more = () => {
      const enough = answered + 3;
      return eventually(() => answered >= enough);
    };
    await more();
    expect((await rotateKeys(folder, [])).sort()).toEqual([...NAMES].sort());
    const renewed = readFileSync(identityFilesOf(folder, 'memory').certFile, 'utf8');
    await eventually(() => memory.context().cert === renewed);
    await more();
    const late = openJobClient(server.address, openBefore());
    await expect(late.list()).resolves.toEqual({ jobs: [] });
    stopped = true;
    await load;

    await finishRotation(folder);
    await eventually(() =>
      left.list().then(
        () => false,
        ({ reason }: { reason: string }) => reason === 'UNAUTHENTICATED',
      ),
    );
    for (const client of clients) await expect(client.list()).resolves.toEqual({ jobs: [] });
    for (const each of [left, late, ...clients]) each.close();
    await server.drain(1_000);
    memory.close();
  });

  it('is not finished while somebody has a certificate of before', async () => {
    const folder = newFolder();
    await createKeys(folder, NAMES);
    const { certFile } = identityFilesOf(folder, 'memory');
    const before = readFileSync(certFile);
    await rotateKeys(folder, []);
    writeFileSync(certFile, before);
    await expect(finishRotation(folder)).rejects.toThrow(/memory has a certificate of an earlier authority/);
    expect(authoritiesOf(folder)).toHaveLength(3);
  });

  it('is taken over only when the certificate, its key and the authorities fit together', async () => {
    const folder = newFolder();
    await createKeys(folder, NAMES);
    const [certFile, keyFile] = [join(folder, 'tls.crt'), join(folder, 'tls.key')];
    const copy = (file: string) => writeFileSync(file, readFileSync(identityFilesOf(folder, 'memory').certFile));
    copy(certFile);
    copy(keyFile);
    const memory = openIdentity({ name: 'memory', ...identityFilesOf(folder, 'memory'), certFile, keyFile });
    const before = memory.context();
    let renewals = 0;
    memory.onRenewed(() => void (renewals += 1));
    await rotateKeys(folder, []);
    copy(certFile);
    const watched = open(folder, 'memory');
    // both look for new files at the same pace
    const renewed = Promise.withResolvers<void>();
    watched.onRenewed(() => renewed.resolve());
    writeFileSync(
      identityFilesOf(folder, 'memory').caFile,
      `${readFileSync(identityFilesOf(folder, 'memory').caFile, 'utf8')}\n`,
    );
    await renewed.promise;
    expect(memory.context().cert).toBe(before.cert);
    copy(keyFile);
    await eventually(() => renewals > 0 && memory.context().cert !== before.cert);
    memory.close();
    watched.close();
  });
});

describe('keys revoke', () => {
  it('removes the certificate, and gives nobody the name again', async () => {
    const folder = newFolder();
    await createKeys(folder, NAMES);
    expect(revokeOperator(folder, OPERATOR)).toBe(true);
    expect(revokeOperator(folder, OPERATOR)).toBe(false);
    expect(existsSync(identityFilesOf(folder, OPERATOR).certFile)).toBe(false);
    await expect(createKeys(folder, [OPERATOR])).rejects.toThrow(/operator:test is revoked/);
    expect(readFileSync(identityFilesOf(folder, OPERATOR).revokedFile, 'utf8')).toBe(`${OPERATOR}\n`);
  });
});
