import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { AgentsServiceService } from 'proto/agents/v1/agents.ts';
import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { CreditsServiceService } from 'proto/credits/v1/credits.ts';
import { keyFolderOf } from 'platform/rpc/keys.ts';
import { openOperator, type Operator } from 'platform/rpc/operator.ts';
import { PROCESSES } from 'platform/core/processes.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { commandLine, printed } from '../admin/admin-command.ts';
import { freeAddresses } from '../support/addresses.ts';
import { descendantsOf } from '../support/process-tree.ts';
import { eventually } from 'platform/service/test-end.ts';
import { request } from '../support/request.ts';
import { launch, REPOSITORY, untilPrinted } from '../support/stack.ts';
import { expressionAgent } from '../support/tenant.ts';
import { spawnProcess, exitOf, expectAllEnded, type SpawnedProcess } from '../support/run-process.ts';

const SLOW = expressionAgent(
  'slow',
  '($count := function($left) { $left = 0 ? 0 : $count($left - 1) }; {"left": $count(n)})',
  { limits: { wallMs: 60_000, maxSteps: 1_000_000_000 } },
);
const READY = 'Ctrl-C stops it';

describe('the first start and the second start', () => {
  const folder = temporaryFolder();
  let env: Record<string, string>;
  let baseUrl: string;
  let token: string;
  let operator: Operator;
  let first: ReturnType<typeof launch>;
  let second: SpawnedProcess | undefined;
  beforeAll(async () => {
    env = { ...(await freeAddresses()), DATA_DIR: folder.path, LOG_LEVEL: 'debug', DRAIN_MS: '60000' };
    baseUrl = `http://${env.GATEWAY_LISTEN}`;
    first = launch(env);
    await untilPrinted(first.launcher, first.output, READY);
    token = /aks_\w+/.exec(first.output())?.[0] as string;
    operator = openOperator({ keyFolder: keyFolderOf(folder.path), addresses: env });
  });
  afterAll(async () => {
    operator.close();
    for (const child of [first.launcher, ...(second ? [second.child] : [])]) {
      child.kill('SIGTERM');
      await exitOf(child);
    }
    folder.remove();
  });

  const demo = async () =>
    (await operator.client(AuthServiceService, 'auth').getOrganization({ idOrName: 'demo' }, operator.as()))
      .organization as { id: string; tier: string };
  const executions = async () => (await request(baseUrl, 'GET', '/api/agent/executions', { token })).body.items;

  it('prints a progress line for each process, then the base URL and the token, also in a curl command', () => {
    const lines = first.output().split('\n');
    for (const name of Object.keys(PROCESSES)) {
      expect(
        lines.filter((line) =>
          new RegExp(`^  ${name} +${env[`${name.toUpperCase()}_LISTEN`]} +\\d+\\.\\d s$`).test(line),
        ),
      ).toHaveLength(1);
    }
    expect(lines.filter((line) => /^Ready after \d+\.\d s: /.test(line))).toEqual([expect.stringContaining(baseUrl)]);
    expect(first.output().split(token)).toHaveLength(3);
  });

  it('prints settings by which the command line finds every process, the gateway among them', async () => {
    const words = /^Administer it: +(.*) npm run admin/m.exec(first.output())?.[1]?.split(' ');
    const settings = Object.fromEntries((words ?? []).map((word) => word.split('=') as [string, string]));
    const table = await printed(commandLine(settings)('doctor', { PATH: process.env.PATH ?? '' }));
    expect(table).toMatch(/^gateway +answer +ok /m);
  });

  it('seeds an enterprise organization, an administrator, 1,000 credits, five agents and a server token', async () => {
    const { id, tier } = await demo();
    const auth = operator.client(AuthServiceService, 'auth');
    const { users } = await auth.listUsers({ pageSize: 10, afterEmail: '' }, operator.as(id));
    const { principal } = await auth.assumeUser({ email: 'admin@demo.example' }, operator.as(id));
    const { serverTokens } = await auth.listServerTokens(
      { pageSize: 10, afterId: '' },
      operator.asPrincipal(principal as never),
    );
    const { account } = await operator.client(CreditsServiceService, 'credits').getBalance({}, operator.as(id));
    const { agents } = await operator.client(AgentsServiceService, 'agents').listAgents({}, operator.as(id));
    expect({
      tier,
      users: users.map(({ email, roles }) => ({ email, roles })),
      tokens: serverTokens.map(({ hint }) => hint),
      available: account?.availableMicros,
      agents: agents.map(({ name, state }) => [name, state]),
    }).toEqual({
      tier: 'enterprise',
      users: [{ email: 'admin@demo.example', roles: ['admin', 'security_admin'] }],
      tokens: [token.slice(0, 8)],
      available: 1_000_000_000,
      agents: [
        ['csv-rows', 'published'],
        ['echo', 'published'],
        ['invoice-total', 'published'],
        ['notes', 'published'],
        ['word-count', 'published'],
      ],
    });
  });

  it('prints a curl command that runs an agent in a shell', () => {
    const command = /^ {2}curl .*\\\n.*$/m.exec(first.output())?.[0] as string;
    const shell = inShell(command);
    expect({ status: shell.status, reply: JSON.parse(shell.stdout) }).toMatchObject({
      status: 0,
      reply: { success: true, agent: 'invoice-total', output: { total: 28, count: 2 } },
    });
  });

  it('drains on SIGINT, also on two: the run in flight is answered, all processes end, exit code 0', async () => {
    const { id } = await demo();
    await operator
      .client(AgentsServiceService, 'agents')
      .applyAgent({ definition: JSON.stringify(SLOW) }, operator.as(id));
    await operator
      .client(AgentsServiceService, 'agents')
      .publishAgent({ name: 'slow', version: undefined }, operator.as(id));
    const running = request(baseUrl, 'POST', '/api/agent/run', {
      token,
      body: { agentName: 'slow', args: { n: 300_000 } },
    });
    await eventually(async () => (await executions()).some(({ status }: { status: string }) => status === 'running'));
    const descendants = descendantsOf(first.launcher.pid as number);
    expect(descendants.length).toBeGreaterThan(Object.keys(PROCESSES).length);

    const closed = once(first.launcher, 'close');
    first.launcher.kill('SIGINT');
    await eventually(() =>
      request(baseUrl, 'GET', '/healthz').then(
        () => false,
        () => true,
      ),
    );
    first.launcher.kill('SIGINT');
    expect(await running).toMatchObject({ status: 200, body: { output: { left: 0 } } });
    expect(await closed).toEqual([0, null]);
    expect(first.output()).toMatch(/Stopped\.\n$/);
    await expectAllEnded(descendants);
  });

  it('the second start keeps all data, prints no secret, creates nothing twice, stops on SIGTERM to npm', async () => {
    const again = (second = spawnProcess('npm', ['start'], {
      cwd: REPOSITORY,
      env: { ...process.env, NODE_OPTIONS: '', ...env },
    }));
    await untilPrinted(again.child, again.output, READY);
    expect(again.output()).not.toContain('aks_');
    expect((await executions()).map(({ agent, status }: { agent: string; status: string }) => [agent, status])).toEqual(
      [
        ['slow', 'succeeded'],
        ['invoice-total', 'succeeded'],
      ],
    );
    const { id } = await demo();
    const { rows } = await operator
      .client(CreditsServiceService, 'credits')
      .listLedgerRows({ pageSize: 100, beforeSequence: 0 }, operator.as(id));
    expect(rows.filter(({ kind }) => kind === 'GRANT')).toHaveLength(1);
    const command = /^Another token: {2}(.*)$/m.exec(again.output())?.[1]?.replace('<name>', "'another one'") as string;
    expect(inShell(command)).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^name +another one$[^]*^value +aks_\w+$/m),
    });

    const descendants = descendantsOf(again.child.pid as number);
    const closed = once(again.child, 'close');
    again.child.kill('SIGTERM');
    await Promise.all([closed, expectAllEnded(descendants)]);
    expect(again.output()).toMatch(/Stopped\.\n$/);
  });

  it("keeps the token's value out of every file and of every log line", () => {
    expect(existsSync(join(folder.path, 'events.db'))).toBe(true);
    const files = readdirSync(folder.path, { recursive: true, encoding: 'utf8' })
      .map((name) => join(folder.path, name))
      .filter((file) => statSync(file).isFile());
    expect(files.length).toBeGreaterThan(10);
    // the random part of the token alone would be enough to forge it
    const secret = token.slice('aks_'.length, -6);
    expect(files.filter((file) => readFileSync(file).includes(secret))).toEqual([]);
    expect(
      first
        .output()
        .split('\n')
        .filter((line) => line.startsWith('{')),
    ).not.toEqual([]);
    expect(
      first
        .output()
        .split('\n')
        .filter((line) => line.includes(secret))
        .map((line) => line.slice(0, 18)),
    ).toEqual(['Server token, show', '  curl -s http://1']);
  });
});

/** Runs a printed command as a person does who pastes it into a shell. */
const inShell = (command: string) =>
  spawnSync('sh', ['-c', command], {
    encoding: 'utf8',
    cwd: REPOSITORY,
    env: { ...process.env, NODE_OPTIONS: '', PATH: `${process.env.PATH}:${join(REPOSITORY, 'test/start/fakes')}` },
  });
