import { join, relative } from 'node:path';
import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { JobServiceService } from 'proto/platform/v1/jobs.ts';
import { keyFolderOf } from 'platform/rpc/keys.ts';
import { openOperator, type Operator } from 'platform/rpc/operator.ts';
import { PROCESSES, type ProcessName } from 'platform/core/processes.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { freeAddresses } from '../support/addresses.ts';
import { descendantsOf } from '../support/process-tree.ts';
import { eventually } from 'platform/service/test-end.ts';
import { request } from '../support/request.ts';
import { REPOSITORY } from '../support/stack.ts';
import {
  spawnProcess,
  exitOf,
  expectAllEnded,
  runToEnd,
  type SpawnedProcess,
  type ProcessResult,
} from '../support/run-process.ts';

const NAMES = Object.keys(PROCESSES) as ProcessName[];
const mainOf = (name: ProcessName): string =>
  join(REPOSITORY, name === 'gateway' ? 'gateway' : `services/${name}`, 'src/main.ts');

describe('a process that is started by itself, as Kubernetes starts it', () => {
  const folder = temporaryFolder();
  let env: Record<string, string>;
  let operator: Operator;
  beforeAll(async () => {
    env = { ...(await freeAddresses()), DATA_DIR: folder.path, LOG_LEVEL: 'info' };
  });
  afterAll(() => {
    operator.close();
    folder.remove();
  });

  const start = (
    file: string,
    args: readonly string[],
    cwd: string,
    given: Record<string, string> = {},
  ): SpawnedProcess =>
    spawnProcess(file, args, { cwd, env: { ...process.env, INIT_CWD: undefined, NODE_OPTIONS: '', ...env, ...given } });
  const runMain = (name: ProcessName, args: readonly string[] = []): Promise<ProcessResult> =>
    runToEnd(process.execPath, [mainOf(name), ...args], { env, cwd: folder.path });
  const untilReady = ({ child, output }: SpawnedProcess): Promise<true> =>
    eventually(() => {
      if (child.exitCode !== null) throw new Error(output());
      return output().includes('"msg":"ready"');
    });
  const jobsOf = (name: ProcessName) => operator.client(JobServiceService, name).listJobs({}, operator.as());

  it('without a key exits with 1 and one sentence that says how to create the key', async () => {
    const outcomes = await Promise.all(NAMES.map((name) => runMain(name)));
    expect(outcomes).toEqual(
      NAMES.map((name) => ({
        code: 1,
        signal: null,
        stdout: '',
        stderr: `${name}: The certificate of ${name} is missing: there is no ${folder.path}/keys/${name}.pem; check DATA_DIR, or make it with "npm run admin -- keys create"\n`,
      })),
    );
  });

  it('with the certificates of "keys create" serves together with the others, and exits with 0 on SIGTERM', async () => {
    const keys = await runToEnd(process.execPath, [join(REPOSITORY, 'admin/src/main.ts'), 'keys', 'create'], { env });
    expect(keys.code).toBe(0);
    operator = openOperator({ keyFolder: keyFolderOf(folder.path), addresses: env });
    const started = NAMES.map((name) => start(process.execPath, [mainOf(name)], '/'));
    await Promise.all(started.map(untilReady));
    for (const name of NAMES.filter((each) => each !== 'gateway')) expect((await jobsOf(name)).jobs).not.toEqual([]);
    await operator
      .client(AuthServiceService, 'auth')
      .createOrganization({ name: 'acme', tier: 'starter' }, operator.as());
    const baseUrl = `http://${env.GATEWAY_LISTEN}`;
    expect([
      (await request(baseUrl, 'GET', '/healthz')).status,
      (await request(baseUrl, 'GET', '/api/memory/types')).status,
    ]).toEqual([200, 401]);
    for (const { child } of started) child.kill('SIGTERM');
    expect(await Promise.all(started.map(({ child }) => exitOf(child)))).toEqual(NAMES.map(() => [0, null]));
  });

  it('starts with npm start -w; a relative DATA_DIR is relative to the folder of the npm call', async () => {
    const memory = start('npm', ['start', '-w', 'services/memory'], REPOSITORY, {
      DATA_DIR: relative(REPOSITORY, folder.path),
    });
    await untilReady(memory);
    expect((await jobsOf('memory')).jobs).not.toEqual([]);
    const descendants = descendantsOf(memory.child.pid as number);
    memory.child.kill('SIGTERM');
    await exitOf(memory.child);
    await expectAllEnded(descendants);
  });

  it('rejects an unknown argument and each wrong setting with one sentence', async () => {
    expect(await runMain('memory', ['--port=1'])).toMatchObject({
      code: 1,
      stderr: 'memory: Unknown argument --port=1; --help lists what can be set\n',
    });
    expect(
      await runToEnd(process.execPath, [mainOf('credits')], { env: { ...env, LEASE_MS: '1', DRAIN_MS: 'x' } }),
    ).toMatchObject({
      code: 1,
      stderr:
        'credits: DRAIN_MS must be an integer from 0 to 600000, not "x"\ncredits: LEASE_MS must be an integer from 1000 to 300000, not "1"\n',
    });
  });
});
