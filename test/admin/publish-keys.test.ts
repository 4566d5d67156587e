import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { PROCESSES } from 'platform/core/processes.ts';
import { openSealing } from 'platform/core/sealing.ts';
import { openIdentity } from 'platform/rpc/identity.ts';
import { createKeys, identityFilesOf } from 'platform/rpc/keys.ts';
import { closedInTheEnd } from 'platform/service/test-end.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { openClusterSecrets } from '../../admin/src/cluster-secrets.ts';
import { publishKeys } from '../../admin/src/publish-keys.ts';

const NAMES = Object.keys(PROCESSES);
const OPERATOR = 'operator:cluster';

interface Stored {
  metadata: { name: string; resourceVersion: string };
  data: Record<string, string>;
}

describe('keys publish', () => {
  const folder = temporaryFolder();
  const account = join(folder.path, 'account');
  const stored = new Map<string, Stored>();
  const calls: string[] = [];
  let server: Server;
  let beforeWrite = (_name: string): void => undefined;
  let version = 0;

  // It answers as the API server does for secrets: what is there, a conflict, and a refusal without the token.
  beforeAll(async () => {
    const keys = join(folder.path, 'server');
    await createKeys(keys, ['localhost']);
    const { certFile, caFile } = identityFilesOf(keys, 'localhost');
    const pem = readFileSync(certFile);
    server = createServer({ cert: pem, key: pem }, async (req, res) => {
      const answer = (status: number, body: object) => res.writeHead(status).end(JSON.stringify(body));
      if (req.headers.authorization !== 'Bearer of-the-pod') return answer(401, { message: 'Unauthorized' });
      const sent = req.method === 'GET' ? undefined : ((await json(req)) as Stored);
      const name = sent?.metadata.name ?? decodeURIComponent(req.url!.split('/').at(-1)!);
      calls.push(`${req.method} ${req.url!.replace(`/${name}`, '')} ${name}`);
      if (sent) beforeWrite(name);
      const found = stored.get(name);
      if (!sent) return found ? answer(200, found) : answer(404, { message: 'not found' });
      if (req.method === 'POST' ? found : found?.metadata.resourceVersion !== sent.metadata.resourceVersion)
        return answer(409, { message: `the object ${name} has been modified` });
      stored.set(name, { ...sent, metadata: { name, resourceVersion: String(++version) } });
      answer(201, stored.get(name)!);
    });
    await once(server.listen(0, 'localhost'), 'listening');
    mkdirSync(account);
    writeFileSync(join(account, 'ca.crt'), readFileSync(caFile));
    writeFileSync(join(account, 'token'), 'of-the-pod\n');
    writeFileSync(join(account, 'namespace'), 'agent-memory');
  });
  closedInTheEnd(() => server.close());
  closedInTheEnd(() => folder.remove());

  const env = () => ({
    KUBERNETES_SERVICE_HOST: 'localhost',
    KUBERNETES_SERVICE_PORT: String((server.address() as { port: number }).port),
  });
  let runs = 0;
  /** Each run has an empty folder, as each pod has. */
  const publish = () =>
    publishKeys(join(folder.path, `run-${++runs}`, 'keys'), NAMES, OPERATOR, openClusterSecrets(env(), account));
  const fileOf = (secret: string, file: string): string =>
    Buffer.from(stored.get(secret)!.data[file]!, 'base64').toString();

  it('gives each process what it needs to prove its name, and nothing of another one', async () => {
    const { issued, written } = await publish();
    expect(issued).toEqual([...NAMES, OPERATOR]);
    expect(written).toEqual(['key-folder', 'master-key', ...NAMES.map((name) => `${name}-keys`), 'operator-keys']);
    expect(new Set(calls.map((call) => call.split(' ')[1]))).toEqual(
      new Set(['/api/v1/namespaces/agent-memory/secrets']),
    );
    for (const name of [...NAMES, OPERATOR]) {
      const secret = `${name === OPERATOR ? 'operator' : name}-keys`;
      const mount = join(folder.path, 'mounted', secret);
      mkdirSync(mount, { recursive: true });
      expect(Object.keys(stored.get(secret)!.data).sort()).toEqual(['ca.crt', 'tls.crt', 'tls.key']);
      for (const file of ['ca.crt', 'tls.crt', 'tls.key']) writeFileSync(join(mount, file), fileOf(secret, file));
      const files = { certFile: 'tls.crt', keyFile: 'tls.key', caFile: 'ca.crt', revokedFile: 'none' };
      const mounted = Object.entries(files).map(([key, file]) => [key, join(mount, file)]);
      // it throws for a certificate that is another's, of another authority, or does not fit its key
      openIdentity({ name, ...(Object.fromEntries(mounted) as typeof files) }).close();
      expect(fileOf(secret, 'tls.crt')).not.toContain('PRIVATE KEY');
    }
    writeFileSync(join(folder.path, 'master-key'), fileOf('master-key', 'master-key'));
    const sealing = openSealing(join(folder.path, 'master-key'));
    expect(sealing.open('test', sealing.seal('test', 'secret'))).toBe('secret');
  });

  it('writes nothing where nothing ends soon, and keeps authority and master key when it renews', async () => {
    calls.length = 0;
    expect(await publish()).toEqual({ issued: [], written: [] });
    expect(calls.filter((call) => !call.startsWith('GET'))).toEqual([]);
    const before = fileOf('memory-keys', 'tls.crt');
    const data = stored.get('key-folder')!.data;
    // as if its certificate was never made
    delete data['memory.pem'];
    expect(await publish()).toEqual({ issued: ['memory'], written: ['key-folder', 'memory-keys'] });
    expect(fileOf('memory-keys', 'tls.crt')).not.toBe(before);
  });

  it('that was interrupted is completed by the next one', async () => {
    stored.delete('agents-keys');
    expect(await publish()).toEqual({ issued: [], written: ['agents-keys'] });
  });

  it('of two at once lets one fail, which changes nothing of the other', async () => {
    delete stored.get('key-folder')!.data['auth.pem'];
    beforeWrite = (name) => {
      stored.get(name)!.metadata.resourceVersion = String(++version);
      beforeWrite = () => undefined;
    };
    const before = new Map(stored);
    await expect(publish()).rejects.toMatchObject({
      name: 'StartError',
      message: 'The API server refuses to PUT the secret key-folder: the object key-folder has been modified',
    });
    expect(stored).toEqual(before);
  });

  it('says what is wrong outside of a cluster, without rights, and without an answer', async () => {
    expect(() => openClusterSecrets({}, account)).toThrow('This is no pod of a Kubernetes cluster');
    writeFileSync(join(account, 'token'), 'of-another');
    await expect(publish()).rejects.toThrow('The API server refuses to GET the secret key-folder: Unauthorized');
    const silent = openClusterSecrets({ ...env(), KUBERNETES_SERVICE_PORT: '1' }, account);
    await expect(silent.read('x')).rejects.toThrow(/^The API server at localhost:1 does not answer: /);
  });
});
