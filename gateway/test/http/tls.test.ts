import { once } from 'node:events';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { renameSync, writeFileSync } from 'node:fs';
import { connect as connectPlain } from 'node:net';
import { join } from 'node:path';
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { CERTIFICATE_MS, issueCertificate, makeAuthority } from 'platform/rpc/certificates.ts';
import { closedInTheEnd, eventually } from 'platform/service/test-end.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { openTls, tlsFiles } from '../../src/http/tls.ts';
import { log, parseRaw, raw, startGatewayFixture, type GatewayFixture } from '../fixture.ts';

const folder = temporaryFolder();
const certFile = join(folder.path, 'tls.crt');
const keyFile = join(folder.path, 'tls.key');
const TLS = { GATEWAY_TLS_CERT_FILE: certFile, GATEWAY_TLS_KEY_FILE: keyFile };
let authority: string;
let ca: string;

/** PEM of a certificate and of its key. */
async function issue(now = Date.now()): Promise<{ cert: string; key: string }> {
  const issuer = { certificate: new X509Certificate(authority), key: createPrivateKey(authority) };
  const [cert = '', key = ''] = (await issueCertificate(issuer, 'gateway', now)).split(/(?=-----BEGIN PRIVATE KEY)/);
  return { cert, key };
}
/** As a cluster does: the new file takes the place of the old one at once. */
function replace(file: string, text: string): void {
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
}
const serialOf = (socket: TLSSocket): string => socket.getPeerCertificate().serialNumber.toLowerCase();
const serialIn = (cert: string): string => new X509Certificate(cert).serialNumber.toLowerCase();

async function open({ port }: { port: number }, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const socket = connect({ port, host: '127.0.0.1', servername: 'gateway', ca, ...options });
  closedInTheEnd(() => socket.destroy());
  await once(socket, 'secureConnect');
  return socket;
}
async function get(socket: TLSSocket, path = '/healthz'): Promise<ReturnType<typeof parseRaw>> {
  socket.write(`GET ${path} HTTP/1.1\r\nHost: gateway\r\n\r\n`);
  const [reply] = (await once(socket, 'data')) as [Buffer];
  return parseRaw(reply.toString());
}

beforeAll(async () => {
  authority = await makeAuthority(Date.now());
  ca = new X509Certificate(authority).toString();
});
beforeEach(async () => {
  const { cert, key } = await issue();
  replace(certFile, cert);
  replace(keyFile, key);
});
afterAll(folder.remove);

describe('a gateway with a certificate', () => {
  let fixture: GatewayFixture;
  beforeAll(async () => {
    const { cert, key } = await issue();
    replace(certFile, cert);
    replace(keyFile, key);
    fixture = await startGatewayFixture({}, TLS);
  });
  afterAll(() => fixture.stop());

  it.each(['TLSv1.2', 'TLSv1.3'] as const)('answers HTTP/1.1 over %s', async (version) => {
    const socket = await open(fixture, { minVersion: version, maxVersion: version, ALPNProtocols: ['h2', 'http/1.1'] });
    expect([socket.alpnProtocol, (await get(socket)).status]).toEqual(['http/1.1', 200]);
  });

  it('offers nothing older than TLS 1.2', async () => {
    const versions = { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'ALL@SECLEVEL=0' } as const;
    await expect(open(fixture, versions)).rejects.toThrow(/protocol version|alert/i);
  });

  it('answers nothing to a client that does not speak TLS', async () => {
    const reply = await raw(fixture.port, 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n').catch(() => '');
    expect(reply).not.toContain('HTTP/1.1 200');
  });

  it('shows a new certificate to new connections, when both files have changed, and keeps the open ones', async () => {
    const before = await open(fixture);
    const { cert, key } = await issue();
    replace(certFile, cert);
    // the key still belongs to the old certificate
    expect((await get(await open(fixture))).status).toBe(200);
    replace(keyFile, key);
    await eventually(async () => serialOf(await open(fixture)) === serialIn(cert));
    expect((await get(before)).status).toBe(200);
    expect(serialOf(before)).not.toBe(serialIn(cert));
  });
});

it('counts connections before the handshake: one too many gets none', async () => {
  const fixture = await startGatewayFixture({}, { ...TLS, CONNECTIONS_PER_ADDRESS: '1' });
  const silent = connectPlain(fixture.port, '127.0.0.1');
  closedInTheEnd(() => silent.destroy());
  await once(silent, 'connect');
  await expect(open(fixture)).rejects.toThrow();
  silent.destroy();
  expect((await get(await eventually(() => open(fixture).catch(() => undefined)))).status).toBe(200);
  await fixture.stop();
});

it('closes a connection that is silent before the handshake, and one that is silent after it', async () => {
  const fixture = await startGatewayFixture({}, { ...TLS, FIRST_BYTE_TIMEOUT_MS: '100' });
  const before = connectPlain(fixture.port, '127.0.0.1');
  const after = await open(fixture);
  for (const socket of [before, after]) socket.resume().on('error', () => undefined);
  await Promise.all([once(before, 'close'), once(after, 'close')]);
  await fixture.stop();
});

it('a start fails with what is wrong with the files', async () => {
  const { cert, key } = await issue();
  const other = await issue();
  const past = await issue(Date.now() - 2 * CERTIFICATE_MS);
  const start = (given: { cert?: string; key?: string }) => () => {
    writeFileSync(certFile, given.cert ?? '');
    writeFileSync(keyFile, given.key ?? '');
    openTls({ certFile, keyFile }, log).close();
  };
  expect(start({ cert, key: other.key })).toThrow(`does not belong to the private key in ${keyFile}`);
  expect(start(past)).toThrow(/ended at \d{4}-/);
  expect(start({ cert: 'nonsense', key })).toThrow('is not valid PEM');
  expect(start({ cert })).toThrow('is not valid PEM');
  expect(() => openTls({ certFile: `${certFile}.none`, keyFile }, log)).toThrow(`${certFile}.none cannot be read`);
  expect(() => tlsFiles(certFile, '')).toThrow('Set both');
  expect(tlsFiles('', '')).toBeUndefined();
});

it('the log says 14 days before that the certificate ends', async () => {
  const lines: unknown[] = [];
  const written = { ...log, warn: (...line: unknown[]) => lines.push(line) } as never;
  let now = Date.now();
  const tls = openTls({ certFile, keyFile }, written, { now: () => now });
  now += CERTIFICATE_MS - 13 * 86_400_000;
  await eventually(() => lines.length > 0);
  expect(lines[0]).toEqual([{ endsAt: expect.any(String) }, 'the certificate for clients ends soon']);
  tls.close();
});
