import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { credentials, makeClientConstructor, type Client } from '@grpc/grpc-js';
import { HealthService } from 'proto/grpc/health/v1/health.ts';
import { PROCESSES, settingOf, type ProcessName } from 'platform/core/processes.ts';
import { createKeys, keyFolderOf } from 'platform/rpc/keys.ts';
import { operatorName } from 'platform/rpc/peer-name.ts';
import { closedInTheEnd } from 'platform/service/test-end.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { freeAddresses, freePorts } from '../support/addresses.ts';
import { context, filesBelow, layOut, stages, type Image } from '../support/image.ts';
import { runToEnd } from '../support/run-process.ts';
import { NO_ENGINES } from '../support/shared-engines.ts';
import { connect, REPOSITORY } from '../support/stack.ts';

const folderOf = (name: string): string => (name in PROCESSES && name !== 'gateway' ? `services/${name}` : name);
/** In an order in which each process finds those that it calls. */
const NAMES: ProcessName[] = ['auth', 'credits', 'memory', 'agents', 'gateway'];
const Health = makeClientConstructor(HealthService, 'grpc.health.v1.Health');
const EXAMPLE = JSON.parse(readFileSync(join(REPOSITORY, 'examples/agents/invoice-total.json'), 'utf8')) as object;

describe('the images of deploy/Dockerfile', () => {
  const folder = temporaryFolder();
  const images = new Map<string, Image>();
  let before: ReturnType<typeof filesBelow>;
  const imageOf = (name: string): Image => images.get(name) as Image;
  const filesOf = (name: string) => before.filter(({ path }) => path.startsWith(join(imageOf(name).root, '/')));

  // npm unpacks a thousand packages here, which takes its time beside other work
  beforeAll(async () => {
    await Promise.all(
      [...NAMES, 'admin'].map(async (name) => images.set(name, await layOut(folderOf(name), join(folder.path, name)))),
    );
    before = [...images.values()].flatMap(({ root }) => filesBelow(root));
  }, 900_000);
  closedInTheEnd(() => folder.remove());

  /** Runs a program as its container does, except for settings. */
  const commandOf = (name: string): [file: string, args: string[], cwd: string] => {
    const { entrypoint, workingFolder } = imageOf(name);
    expect(entrypoint[0]).toBe('node');
    return [process.execPath, entrypoint.slice(1), workingFolder];
  };

  it('have what their program needs at run time and nothing that builds or tests', () => {
    const sizes = [...images.keys()].map((name) => {
      const files = filesOf(name);
      const megabytes = files.reduce((sum, { bytes }) => sum + bytes, 0) / 1e6;
      return { name, files: files.length, megabytes: Number(megabytes.toFixed(1)) };
    });
    console.table(sizes);
    // the largest, the gateway, has 49 MB; what would be doubled belongs to another stage
    expect(sizes.filter(({ megabytes }) => megabytes > 90)).toEqual([]);
    const unwanted =
      /\/node_modules\/(typescript|jest|@swc|@bufbuild\/buf|ts-proto|eslint|prettier|node)\/|^\/app\/(?!node_modules).*\.test\.ts$/;
    for (const name of images.keys()) {
      const paths = filesOf(name).map(({ path }) => path.slice(imageOf(name).root.length));
      expect(paths.filter((path) => unwanted.test(path))).toEqual([]);
      const workspaces = ['admin', 'gateway', ...NAMES.slice(0, 4).map(folderOf), 'launcher', 'dev-servers', 'clients'];
      const others = workspaces.filter(
        (each) => each !== folderOf(name) && existsSync(join(imageOf(name).root, 'app', each)),
      );
      expect({ name, others }).toEqual({ name, others: [] });
      expect(paths.some((path) => path.startsWith('/app/proto/gen/'))).toBe(true);
      expect(missingPackages(imageOf(name), ['platform', 'proto', folderOf(name)])).toEqual([]);
    }
  });

  it('run as a user without rights, refuse embedded engines and generate their code by the command of this repository', () => {
    for (const { user, env } of images.values()) {
      expect(Number(user.split(':')[0])).toBeGreaterThan(0);
      expect(env).toMatchObject({ EMBEDDED: 'refuse', NODE_ENV: 'production' });
    }
    const { generated, image } = Object.fromEntries(stages());
    expect(generated!.instructions.filter(({ verb }) => verb === 'RUN').map(({ rest }) => rest)).toEqual([
      'npm ci --ignore-scripts --no-audit --no-fund',
      'npm run gen',
    ]);
    expect(
      image!.instructions.some(({ verb, rest }) => verb === 'LABEL' && /\.licenses="Apache-2\.0"/.test(rest)),
    ).toBe(true);
    // no key, database or report of a developer reaches a builder
    expect(context().filter((file) => !/\.(ts|js|json|yaml|yml|proto|sql|lua|cjs)$/.test(file))).toEqual([]);
  });

  it('start without their engines no further than a sentence that says what is missing or does not answer', async () => {
    const keys = join(folder.path, 'refused');
    await createKeys(keyFolderOf(keys), [...Object.keys(PROCESSES), operatorName()]);
    const [port] = await freePorts(1);
    const start = async (name: ProcessName, given: Record<string, string>) => {
      const [file, args, cwd] = commandOf(name);
      const { code, stderr } = await runToEnd(file, args, {
        env: { ...NO_ENGINES, ...imageOf(name).env, DATA_DIR: keys, MONGODB_TIMEOUT_MS: '500', ...given },
        cwd,
      });
      return [code, stderr.split('\n', 1)[0]];
    };
    const services = NAMES.slice(0, 4);
    expect(await Promise.all(services.map((name) => start(name, {})))).toEqual(
      services.map((name) => [1, `${name}: MONGODB_URL is missing, and EMBEDDED=refuse allows no SQLite file instead`]),
    );
    const mongodb = { MONGODB_URL: `mongodb://127.0.0.1:${port}/?replicaSet=rs0` };
    const kafka = { KAFKA_BROKERS: `127.0.0.1:${port}` };
    expect(
      await Promise.all([start('auth', { ...mongodb, ...kafka }), start('memory', { ...kafka, EMBEDDED: 'allow' })]),
    ).toEqual([
      [1, expect.stringMatching(/^auth: MongoDB at \S+ cannot be reached/)],
      [1, expect.stringMatching(/^memory: Kafka at \S+ cannot be used/)],
    ]);
  });

  it('serve together, and write nothing where the images have their files', async () => {
    const data = join(folder.path, 'data');
    const addresses = await freeAddresses();
    const env = { ...NO_ENGINES, ...addresses, DATA_DIR: data };
    const admin = (...words: string[]) => {
      const [file, args, cwd] = commandOf('admin');
      return runToEnd(file, [...args, ...words], { env: { ...env, ...imageOf('admin').env }, cwd });
    };
    expect(await admin('keys', 'create')).toMatchObject({ code: 0, stderr: '' });
    for (const name of NAMES) {
      const [file, args, cwd] = commandOf(name);
      const [health] = await freePorts(1);
      const settings = {
        EMBEDDED: 'allow',
        LOG_LEVEL: 'warn',
        [settingOf(name, 'HEALTH_LISTEN')]: `127.0.0.1:${health}`,
      };
      const child = spawn(file, args, {
        env: { ...process.env, ...imageOf(name).env, ...env, ...settings },
        cwd,
        stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      });
      closedInTheEnd(async () => {
        child.kill('SIGKILL');
        if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
      });
      expect(await once(child, 'message')).toEqual([
        expect.objectContaining({ ready: addresses[settingOf(name, 'LISTEN')] }),
      ]);
      if (name !== 'gateway') expect(await healthAt(`127.0.0.1:${health}`)).toEqual({ status: 'SERVING' });
    }
    const { tenant, operator } = connect({ baseUrls: [`http://${addresses.GATEWAY_LISTEN}`], folder: data, env });
    closedInTheEnd(() => operator.close());
    const { request } = await tenant({ credits: 10, agents: [EXAMPLE] });
    expect(
      await request('POST', '/api/agent/run', {
        agentName: 'invoice-total',
        args: { items: [{ price: 12.5, quantity: 2 }] },
      }),
    ).toMatchObject({ status: 200, body: { output: { total: 25, count: 1 } } });
    expect(await admin('doctor')).toMatchObject({ code: 0 });
    expect([...images.values()].flatMap(({ root }) => filesBelow(root))).toEqual(before);
  });
});

/** Packages that a workspace names and cannot import in the image; some are imported only when they are needed. */
const missingPackages = ({ root }: Image, workspaces: readonly string[]): string[] =>
  workspaces.flatMap((workspace) => {
    const file = readFileSync(join(root, 'app', workspace, 'package.json'), 'utf8');
    const { dependencies = {} } = JSON.parse(file) as { dependencies?: Record<string, string> };
    const folders = [join(root, 'app', workspace, 'node_modules'), join(root, 'app/node_modules')];
    return Object.keys(dependencies).filter((name) => !folders.some((folder) => existsSync(join(folder, name))));
  });

/** Asks as a probe of Kubernetes does: without a certificate. */
async function healthAt(address: string): Promise<unknown> {
  const client = new Health(address, credentials.createInsecure()) as unknown as Client & {
    check(request: object, reply: (error: Error | null, answer: unknown) => void): void;
  };
  try {
    return await new Promise((resolve, reject) =>
      client.check({ service: '' }, (error, answer) => (error ? reject(error) : resolve(answer))),
    );
  } finally {
    client.close();
  }
}
