import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { AgentsServiceService } from 'proto/agents/v1/agents.ts';
import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { DiagnosisServiceService } from 'proto/platform/v1/diagnosis.ts';
import { newId } from 'platform/core/ids.ts';
import { makeMasterKey, masterKeysIn } from 'platform/core/master-key.ts';
import { PROCESSES } from 'platform/core/processes.ts';
import { createKeys, keyFolderOf, masterKeyFileOf } from 'platform/rpc/keys.ts';
import { openOperator, type Operator } from 'platform/rpc/operator.ts';
import { MASTER_KEY_CHECK } from 'platform/service/master-key-check.ts';
import { tlsSettings } from 'platform/service/process.ts';
import { eventually } from 'platform/service/test-end.ts';
import { OPERATOR, startProgram, temporaryFolder, type RunningProgram } from 'platform/service/testing.ts';
import { program as agentsProgram } from '../../services/agents/src/service.ts';
import { program as authProgram } from '../../services/auth/src/service.ts';
import { commandLine, json, printed, sentence, type CommandLine } from './admin-command.ts';

/** The jobs run only when the test asks for it: what is a job's interval elsewhere is a test's step here. */
describe('the commands of the master key', () => {
  const folder = temporaryFolder();
  const keys = keyFolderOf(folder.path);
  const file = masterKeyFileOf(keys);
  const organizationId = newId();
  const shown: string[] = [];
  let [auth, agents]: RunningProgram[] = [];
  let admin: CommandLine;
  let reseal: () => Promise<number>;
  beforeAll(async () => {
    await createKeys(keys, [...Object.keys(PROCESSES), OPERATOR]);
    let jobs: readonly { name: string; run(signal: AbortSignal): Promise<number> }[] = [];
    auth = await startProgram(
      { ...authProgram, jobs: (deps) => ((jobs = [...jobs, ...authProgram.jobs(deps)]), []) },
      { ...tlsSettings(keys, 'auth'), MASTER_KEY_FILE: file },
    );
    agents = await startProgram(
      { ...agentsProgram, jobs: (deps) => ((jobs = [...jobs, ...agentsProgram.jobs(deps)]), []) },
      { ...tlsSettings(keys, 'agents'), MASTER_KEY_FILE: file },
    );
    const run = commandLine({
      DATA_DIR: folder.path,
      AUTH_ADDRESS: auth.address,
      AGENTS_ADDRESS: agents.address,
    });
    admin = async (words) => {
      const result = await run(`--operator test ${String(words)}`);
      shown.push(result.stdout, result.stderr);
      return result;
    };
    reseal = async () => {
      const counts = jobs.filter(({ name }) => name === 'reseal').map((job) => job.run(new AbortController().signal));
      return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
    };
  });
  afterAll(async () => {
    await Promise.all([auth?.stop(), agents?.stop()]);
    folder.remove();
  });

  async function asOperator<T>(call: (own: Operator) => Promise<T>): Promise<T> {
    const addresses = { AUTH_ADDRESS: auth!.address, AGENTS_ADDRESS: agents!.address };
    const own = openOperator({ name: OPERATOR, keyFolder: keys, addresses });
    return call(own).finally(() => own.close());
  }
  const ids = () => masterKeysIn(readFileSync(file, 'utf8'), file).map(({ id }) => id);
  const findings = () =>
    asOperator((own) =>
      Promise.all(
        (['auth', 'agents'] as const).map(async (name) => {
          const found = (await own.client(DiagnosisServiceService, name).diagnose({}, own.as())).findings;
          const { fine, sentence: text } = found.find((one) => one.name === MASTER_KEY_CHECK)!;
          return [name, fine, text];
        }),
      ),
    );
  const all: string[] = [];
  /** Lets the newest key seal since an hour, as if the overlap had passed. */
  const passOverlap = (): void => {
    const past = new Date(Date.now() - 3_600_000).toISOString();
    writeFileSync(file, readFileSync(file, 'utf8').replace(/ \S+Z$/m, ` ${past}`));
  };

  it('take a key through a rotation, without a restart, and retire no key that is still needed', async () => {
    const secret = { name: 'signing', value: 'a value', overlapSeconds: 0 };
    await asOperator((own) => own.client(AgentsServiceService, 'agents').setSecret(secret, own.as(organizationId)));
    const [first] = ids() as [string];
    const settled = (id: string) => [
      ['auth', true, `${id} seals, and nothing needs an older one`],
      ['agents', true, `${id} seals, and nothing needs an older one`],
    ];
    expect(await findings()).toEqual(settled(first));
    expect(await json(admin('--json keys retire-master'))).toEqual({ file, newest: first, retired: [] });

    const before = Date.now();
    const added = await json(admin('--json keys rotate-master --overlap 1h'));
    all.push(...readFileSync(file, 'utf8').split('\n'));
    const [second] = ids() as [string];
    expect(added).toEqual({ file, added: second, sealsFrom: expect.any(String), kept: [first] });
    expect(Date.parse(added.sealsFrom)).toBeGreaterThanOrEqual(before + 3_600_000);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(await sentence(admin('keys rotate-master'))).toBe(
      `${file} has a new key already: ${second} seals from ${added.sealsFrom}`,
    );
    expect(await sentence(admin('keys retire-master'))).toBe(
      `The newest key ${second} seals from ${added.sealsFrom}; the older ones can be retired a minute later`,
    );
    expect(await findings()).toEqual(settled(first));

    passOverlap();
    const older = `${second} seals, older ones are needed for 1 (job reseal)`;
    await eventually(async () => (await findings()).every(([, , text]) => text === older));
    expect(await findings()).toEqual([
      ['auth', false, older],
      ['agents', false, older],
    ]);
    const refused = await sentence(admin('keys retire-master'));
    expect(refused).toBe(`A replica of auth cannot do without the older keys: ${older}`);
    expect(ids()).toEqual([second, first]);

    expect(await reseal()).toBe(2);
    expect(await findings()).toEqual(settled(second));
    expect(await printed(admin('keys retire-master'))).toMatch(new RegExp(`^retired +${first}$`, 'm'));
    expect(ids()).toEqual([second]);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    await Promise.all([auth!.restart(), agents!.restart()]);
  });

  it('do not retire a key while a replica has another file, or does not answer', async () => {
    const [second] = ids() as [string];
    const elsewhere = `${folder.path}/elsewhere`;
    writeFileSync(elsewhere, makeMasterKey() + readFileSync(file, 'utf8'));
    const env = { DATA_DIR: folder.path, MASTER_KEY_FILE: elsewhere, AUTH_ADDRESS: auth!.address };
    const other = commandLine({ ...env, AGENTS_ADDRESS: agents!.address });
    const [newest] = masterKeysIn(readFileSync(elsewhere, 'utf8'), elsewhere);
    expect(await sentence(other('--operator test keys retire-master'))).toBe(
      `A replica of auth seals under ${second} and not under ${newest!.id}: has it the same file?`,
    );
    const stopped = commandLine({ ...env, AUTH_ADDRESS: '127.0.0.1:1', AGENTS_ADDRESS: agents!.address });
    expect(await sentence(stopped('--operator test keys retire-master'))).toBe(
      'auth does not answer at 127.0.0.1:1: is it running?',
    );
    expect(masterKeysIn(readFileSync(elsewhere, 'utf8'), elsewhere)).toHaveLength(2);
  });

  it('show no key', () => {
    const lines = all.filter((line) => line !== '');
    expect(lines).toHaveLength(2);
    for (const line of lines)
      for (const encoding of ['base64', 'hex', 'base64url'] as const)
        expect(shown.join()).not.toContain(Buffer.from(line, 'base64').toString(encoding).slice(0, 16));
  });

  it('leave auth able to issue JWTs after all of that', async () => {
    const { jwt } = await asOperator(async (own) => {
      const client = own.client(AuthServiceService, 'auth');
      const { organization } = await client.createOrganization({ name: 'Acme', tier: 'enterprise' }, own.as());
      const email = 'ada@acme.example';
      await client.createUser({ email, name: 'Ada', roles: [], groups: [] }, own.as(organization!.id));
      return client.issueJwt({ email }, own.as(organization!.id));
    });
    expect(jwt).toMatch(/^eyJ/);
  });
});
