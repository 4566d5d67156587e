import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { AgentsServiceService } from 'proto/agents/v1/agents.ts';
import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { CreditsServiceService } from 'proto/credits/v1/credits.ts';
import { keyFolderOf } from 'platform/rpc/keys.ts';
import { openOperator } from 'platform/rpc/operator.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { freeAddresses } from '../support/addresses.ts';
import { childrenOf, commandOf, descendantsOf } from '../support/process-tree.ts';
import { eventually } from 'platform/service/test-end.ts';
import { request } from '../support/request.ts';
import { launch, untilPrinted } from '../support/stack.ts';
import { exitOf, expectAllEnded, killAndListDescendants } from '../support/run-process.ts';

type Start = ReturnType<typeof launch>;

describe('starts on one folder that are interrupted again and again', () => {
  const folder = temporaryFolder();
  /** The tokens that starts have printed, in order; the seed may be complete when a signal arrives. */
  const printedTokens: string[] = [];
  const collectToken = (output: string): void => void printedTokens.push(...(/aks_\w+/.exec(output) ?? []));
  afterAll(() => folder.remove());

  const environment = async (): Promise<Record<string, string>> => ({
    ...(await freeAddresses()),
    DATA_DIR: folder.path,
  });
  const startUntil = async (reached: (start: Start) => boolean): Promise<Start> => {
    const start = launch(await environment());
    await eventually(() => {
      if (start.launcher.exitCode !== null) throw new Error(`The launcher ended too early:\n${start.output()}`);
      return reached(start);
    });
    return start;
  };
  const hasChildren =
    (count: number) =>
    ({ launcher }: Start) =>
      childrenOf(launcher.pid as number).filter((pid) => commandOf(pid).includes('/src/main.ts')).length >= count;
  const hasReadyProcesses =
    (count: number) =>
    ({ output }: Start) =>
      output().split(' s\n').length > count;
  /**
   * True when the seed has written rows of this table. The file is read only after all processes are ready, because a
   * service that starts needs its file for itself.
   */
  const hasSeeded = (service: string, table: string) => (start: Start) =>
    hasReadyProcesses(5)(start) && rowsIn(join(folder.path, `${service}.db`), table) > 0;

  it.each<[string, (start: Start) => boolean]>([
    ['when the launcher has just been spawned', () => true],
    ['when the first child process exists', hasChildren(1)],
    ['when one process is ready', hasReadyProcesses(1)],
    ['in the middle of the seed', hasSeeded('auth', 'memberships')],
  ])('SIGINT %s: no process is left, and no error is reported', async (_when, reached) => {
    const start = await startUntil(reached);
    const descendants = descendantsOf(start.launcher.pid as number);
    const closed = once(start.launcher, 'close');
    start.launcher.kill('SIGINT');
    const [code, signal] = await closed;
    // before the launcher handles signals it has started nothing, and the signal ends it
    expect(signal === 'SIGINT' ? start.output() : code).toBe(signal === 'SIGINT' ? '' : 0);
    expect(start.output()).not.toMatch(/failed|Error/);
    collectToken(start.output());
    await expectAllEnded(descendants);
  });

  it.each<[string, (start: Start) => boolean]>([
    ['when all child processes exist but are not ready', hasChildren(5)],
    ['in the middle of the seed, when the first agent exists', hasSeeded('agents', 'agents')],
    ['at the end of the seed, when the token exists', hasSeeded('auth', 'server_tokens')],
  ])('kill -9 %s: no child is left', async (_when, reached) => {
    const start = await startUntil(reached);
    const descendants = await killAndListDescendants(start.launcher);
    expect(descendants.length).toBeGreaterThanOrEqual(5);
    collectToken(start.output());
    await expectAllEnded(descendants);
  });

  it('of two simultaneous starts one fails; the other completes the seed: all once, one valid token', async () => {
    const environments = [await environment(), await environment()];
    const starts = environments.map((env) => ({ env, ...launch(env) }));
    const loser = await Promise.race(starts.map(async (start) => (await once(start.launcher, 'close'), start)));
    const winner = starts.find((start) => start !== loser) as (typeof starts)[number];
    expect([loser.launcher.exitCode, loser.output()]).toEqual([
      1,
      `The start failed: The data folder ${folder.path} is in use by another start\n`,
    ]);
    await untilPrinted(winner.launcher, winner.output, 'Ctrl-C stops it');

    const operator = openOperator({ keyFolder: keyFolderOf(folder.path), addresses: winner.env });
    const auth = operator.client(AuthServiceService, 'auth');
    const agents = operator.client(AgentsServiceService, 'agents');
    const { organizations } = await auth.listOrganizations({ pageSize: 10, afterName: '' }, operator.as());
    const on = () => operator.as(organizations[0]?.id);
    const { users } = await auth.listUsers({ pageSize: 10, afterEmail: '' }, on());
    const { principal } = await auth.assumeUser({ email: 'admin@demo.example' }, on());
    const { serverTokens } = await auth.listServerTokens(
      { pageSize: 10, afterId: '' },
      operator.asPrincipal(principal as never),
    );
    const { rows } = await operator
      .client(CreditsServiceService, 'credits')
      .listLedgerRows({ pageSize: 10, beforeSequence: 0 }, on());
    const published = (await agents.listAgents({}, on())).agents.filter(
      ({ publishedVersion, latestVersion }) => publishedVersion === 1 && latestVersion === 1,
    );
    expect({
      organizations: organizations.map(({ name }) => name),
      users: users.map(({ email }) => email),
      rows: rows.map(({ kind, grantedDeltaMicros }) => [kind, grantedDeltaMicros]),
      published: published.length,
    }).toEqual({
      organizations: ['demo'],
      users: ['admin@demo.example'],
      rows: [['GRANT', 1_000_000_000]],
      published: 5,
    });
    const live = serverTokens.filter(({ revokedAt }) => revokedAt === undefined);
    expect(live.map(({ name }) => name)).toEqual(['first start']);

    collectToken(winner.output());
    expect(
      (
        await request(`http://${winner.env.GATEWAY_LISTEN}`, 'GET', '/api/agent/run', {
          token: printedTokens.at(-1) as string,
        })
      ).status,
    ).toBe(200);
    operator.close();
    winner.launcher.kill('SIGINT');
    expect(await exitOf(winner.launcher)).toEqual([0, null]);
  });
});

function rowsIn(file: string, table: string): number {
  if (!existsSync(file)) return 0;
  const database = new DatabaseSync(file, { readOnly: true, timeout: 1_000 });
  try {
    return (database.prepare(`SELECT count(*) AS n FROM ${table}`).get() as { n: number }).n;
  } catch (error) {
    // the service has not created its tables yet
    if (/no such table/.test((error as Error).message)) return 0;
    throw error;
  } finally {
    database.close();
  }
}
