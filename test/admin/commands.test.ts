import { userInfo } from 'node:os';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { newId } from 'platform/core/ids.ts';
import { eventually } from 'platform/service/test-end.ts';
import { request } from '../support/request.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { RunningStack } from '../support/stack.ts';
import { expressionAgent } from '../support/tenant.ts';
import { commandLine, json, printed, sentence, type CommandLine } from './admin-command.ts';

const OPERATOR = userInfo().username;
const ADA = 'ada@acme.example';

describe('the commands of the admin command line', () => {
  let stack: RunningStack;
  let admin: CommandLine;
  let acme: { id: string };
  beforeAll(async () => {
    stack = await sharedStack();
    admin = commandLine({ ...stack.env, ORGANIZATION: 'acme' });
    acme = await json(admin('organization create acme --tier enterprise --json'));
    await printed(on(`user create ${ADA} --name Ada --role admin --role security_admin`));
  });

  const on = (words: string) => admin(`--organization acme ${words}`);
  const asAda = (words: string) => on(`--as ${ADA} ${words}`);
  const status = async (token: string) => (await request(stack.baseUrl, 'GET', '/api/memory/types', { token })).status;
  it('organization: create, list, tier, deactivate and activate work by name or id', async () => {
    const { id } = await json(admin('organization create other --json'));
    expect(await json(admin('--json organization list'))).toEqual(
      expect.arrayContaining([expect.objectContaining({ id, name: 'other', tier: 'starter', state: 'active' })]),
    );
    expect(await json(admin('--json organization tier other professional'))).toMatchObject({
      id,
      tier: 'professional',
    });
    expect(await json(admin(`--json organization deactivate ${id}`))).toMatchObject({ id, state: 'deactivated' });
    expect(await json(admin('--json organization activate other'))).toMatchObject({ id, state: 'active' });
  });

  it('organization tier --list shows what each tier holds', async () => {
    expect(await printed(admin('organization tier --list'))).toMatch(
      /^Tier .*\nstarter +memory +20 +10000 .* 5 +1\n[^]*enterprise +memory, agents +2000 +no limit .* 500 +10\n$/,
    );
    expect(await json(admin('--json organization tier --list'))).toContainEqual(
      expect.objectContaining({ name: 'starter', capabilities: ['memory'] }),
    );
    expect(await sentence(admin('organization tier acme'), 2)).toBe(
      'Name an organization and its new tier, or use --list',
    );
  });

  it('jwt: issue, list, revoke and rotate-key work, and a revoked grant ends its JWT', async () => {
    const { jwt, id } = await json(on(`--json jwt issue ${ADA}`));
    expect(await status(jwt)).toBe(200);
    expect(await json(on('--json jwt list'))).toEqual([expect.objectContaining({ id, email: ADA })]);
    expect(await json(on(`--json jwt revoke ${id}`))).toMatchObject({ id, revokedAt: expect.any(String) });
    expect(await status(jwt)).toBe(401);
    expect(await json(admin('--json jwt rotate-key'))).toMatchObject({ id: expect.any(String) });
  });

  it('user: create, list, set-roles, set-groups and remove show their results', async () => {
    expect(await json(on('--json user create bob@acme.example'))).toMatchObject({
      email: 'bob@acme.example',
      name: 'bob',
      roles: [],
      groups: [],
    });
    expect(await json(on('--json user set-roles bob@acme.example admin'))).toMatchObject({ roles: ['admin'] });
    expect(await json(on('--json user set-groups bob@acme.example finance sales'))).toMatchObject({
      groups: ['finance', 'sales'],
    });
    const [asTable, asJson] = await Promise.all([printed(on('user list')), json(on('--json user list'))]);
    expect(asTable).toMatch(
      /^Email +Name +Roles +Groups +Created\n[^]*bob@acme\.example +bob +admin +finance, sales +\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ$/m,
    );
    expect(asJson.map(({ email }: { email: string }) => email)).toEqual([ADA, 'bob@acme.example']);
    await printed(on('user set-roles bob@acme.example'));
    await printed(on('user remove bob@acme.example'));
    expect(await json(on('--json user list'))).toEqual([expect.objectContaining({ email: ADA })]);
  });

  it('token: a security administrator creates and revokes it; its value is shown once', async () => {
    const shown = await printed(asAda('token create nightly'));
    const value = /^value +(aks_\w+)$/m.exec(shown)?.[1] as string;
    expect([shown.split('aks_').length - 1, await status(value)]).toEqual([2, 200]);
    const lists = await Promise.all([printed(asAda('token list')), printed(asAda('--json token list'))]);
    for (const list of lists) {
      expect(list).toContain('nightly');
      expect(list).not.toContain(value.slice(8));
    }
    expect(lists[0]).toMatch(
      /^Name +Id +Hint +Created +Last used +State\nnightly +\S{36} +aks_\w{4} +\S+ \S+Z +(never|\S+ \S+Z) +live\n$/,
    );
    expect(await json(asAda('--json token revoke nightly'))).toMatchObject({
      name: 'nightly',
      revokedAt: expect.any(String),
    });
    expect(await status(value)).toBe(401);
    expect(await printed(asAda('token list'))).toMatch(/ revoked\n$/);
    const { id } = (await json(asAda('--json token list')))[0] as { id: string };
    expect(await json(asAda(`--json token revoke ${id} --cancel-runs`))).toMatchObject({ id, runsCancelled: true });
    expect(await json(asAda('--json token create until --expires-at 2099-01-31'))).toMatchObject({
      expiresAt: '2099-01-31T00:00:00.000Z',
    });
    expect(await sentence(asAda('token create never --expires-at tomorrow'), 2)).toBe(
      'tomorrow is not a time such as 2030-01-31 or 2030-01-31T12:00:00Z',
    );
  });

  it('token: a user without security_admin and an operator without --as are refused', async () => {
    await printed(on('user create eve@acme.example --role admin'));
    const denials = await Promise.all(
      ['token create mine', 'token list', 'token revoke mine'].map((words) =>
        sentence(on(`--as eve@acme.example ${words}`)),
      ),
    );
    expect(denials).toEqual(Array(3).fill('Security administrator required'));
    expect(await sentence(on('token list'), 2)).toBe(
      'Token commands act as a security administrator; the option --as <email> is required',
    );
    expect(await printed(asAda('token list'))).not.toContain('mine');
  });

  it('credits: a grant repeated with its id adds once, in the balance and in the ledger', async () => {
    const id = newId();
    const grant = `credits grant 12.5 --note opening --id ${id}`;
    expect(await printed(on(grant))).toMatch(/^available +12\.5$/m);
    expect(await json(on(`--json ${grant}`))).toMatchObject({
      availableMicros: 12_500_000,
      grantedMicros: 12_500_000,
      sequence: 1,
    });
    await printed(on('credits grant 1'));
    expect(await printed(on('credits balance'))).toMatch(/^available +13\.5\nreserved +0\nspent +0\ngranted +13\.5$/m);
    const [asTable, rows] = await Promise.all([printed(on('credits ledger')), json(on('--json credits ledger'))]);
    expect(asTable).toMatch(new RegExp(`^1 +\\S+ \\S+Z +grant +12\\.5 +12\\.5 .*${id}$`, 'm'));
    expect(rows.map((row: { kind: string; note: string; actor: string }) => [row.kind, row.note, row.actor])).toEqual([
      ['GRANT', '', `operator:${OPERATOR}`],
      ['GRANT', 'opening', `operator:${OPERATOR}`],
    ]);
  });

  it('agent: the same document twice is one version; publish, roll back and retire decide what runs', async () => {
    const file = join(stack.folder, 'total.json');
    const write = (value: number) => writeFileSync(file, JSON.stringify(expressionAgent('total', `{"n": ${value}}`)));
    const { value: token } = await json(asAda('--json token create runs'));
    const run = async () => {
      const { status: code, body } = await request(stack.baseUrl, 'POST', '/api/agent/run', {
        token,
        body: { agentName: 'total', args: {} },
      });
      return code === 200 ? body.output.n : code;
    };
    write(1);
    expect(await json(on(`--json agent apply ${file}`))).toEqual([
      { file, name: 'total', outcome: 'added', version: 1, changed: true, state: 'draft' },
    ]);
    expect(await json(on(`--json agent apply ${file}`))).toEqual([
      { file, name: 'total', outcome: 'unchanged', version: 1, changed: false, state: 'draft' },
    ]);
    expect(await run()).toBe(404);
    expect(await json(on('--json agent publish total'))).toMatchObject({ state: 'published', publishedVersion: 1 });
    write(2);
    expect(await printed(on(`agent apply ${file} --publish`))).toMatch(
      /^total +2 +changed +published +~\/runtime\/source /m,
    );
    expect(await run()).toBe(2);
    expect(await json(on('--json agent publish total --version 1'))).toMatchObject({
      publishedVersion: 1,
      latestVersion: 2,
    });
    expect(await run()).toBe(1);
    const [agents, versions] = await Promise.all([printed(on('agent list')), json(on('--json agent versions total'))]);
    expect(agents).toMatch(/^total +published +1 +2 +\S+ \S+Z$/m);
    expect(versions.map(({ version }: { version: number }) => version)).toEqual([2, 1]);
    expect(JSON.parse(await printed(on('agent show total')))).toEqual(expressionAgent('total', '{"n": 1}'));
    expect(await json(on('--json agent show total --version 2'))).toMatchObject({
      version: 2,
      createdAt: expect.any(String),
    });
    write(3);
    expect(await json(on(`--json agent diff ${file}`))).toEqual([
      { path: '/runtime/source', change: 'changed', before: '"{\\"n\\": 1}"', after: '"{\\"n\\": 3}"' },
    ]);
    expect(await printed(on(`agent diff ${file} --version 2`))).toMatch(/^\/runtime\/source +changed +/m);
    expect(await json(on('--json agent retire total'))).toMatchObject({ state: 'retired' });
    expect(await run()).toBe(404);
  });

  it('agent apply: a folder at once, with what would change, what is at fault where, and what no file defines', async () => {
    const tenant = await stack.tenant({
      credits: 10,
      agents: [expressionAgent('left', '1'), expressionAgent('kept', '1')],
    });
    const own = (words: string) => admin(`--organization ${tenant.name} ${words}`);
    const folder = join(stack.folder, tenant.name);
    mkdirSync(folder);
    const write = (name: string, definition: object) =>
      writeFileSync(join(folder, name), JSON.stringify(definition, null, 2));
    write('kept.json', expressionAgent('kept', '2', { description: 'Two' }));
    write('new.json', expressionAgent('new', '3'));
    const states = async () =>
      (await json(own('--json agent list'))).map(({ name, state, latestVersion }: Record<string, unknown>) =>
        [name, state, latestVersion].join(' '),
      );
    const before = await states();
    const dry = await own(`--json agent apply -f ${folder} --dry-run --prune --publish`);
    expect([dry.code, dry.stderr]).toEqual([0, 'Nothing was changed\n']);
    expect(JSON.parse(dry.stdout)).toEqual([
      expect.objectContaining({
        name: 'kept',
        outcome: 'changed',
        version: 2,
        differences: [
          expect.objectContaining({ path: '/runtime/source', change: 'changed' }),
          { path: '/description', change: 'added', after: '"Two"' },
        ],
      }),
      expect.objectContaining({ name: 'new', outcome: 'added', version: 1 }),
      { name: 'left', outcome: 'retired', version: 1, state: 'published' },
    ]);
    expect(await states()).toEqual(before);

    writeFileSync(join(folder, 'broken.json'), '{\n  "name": "broken",\n}\n');
    write('wrong.json', expressionAgent('wrong', '$unknown()', { limits: { wallMs: 1 } }));
    const faulty = await own(`agent apply ${folder} --prune --publish`);
    expect([faulty.code, faulty.stdout.split('\n').map((line) => line.split(/ +/).slice(0, 3).join(' '))]).toEqual([
      1,
      ['Name Version Outcome', '- - failed', 'kept 2 changed', 'new 1 added', 'wrong - failed', ''],
    ]);
    expect(faulty.stderr).toContain('broken.json:3: is not JSON: property name expected\n');
    expect(faulty.stderr).toMatch(/wrong\.json:\d+: \/limits\/wallMs: wallMs must be >= 100\n/);
    expect(faulty.stderr).toContain('No agent was retired, because a file has faults\n');
    expect(await states()).toEqual(['kept published 2', 'left published 1', 'new published 1']);

    for (const name of ['broken.json', 'wrong.json']) rmSync(join(folder, name));
    write('twin.json', expressionAgent('new', '4'));
    expect((await own(`agent apply ${folder}`)).stderr).toMatch(/twin\.json:4: .*new\.json defines new, too\n/);
    rmSync(join(folder, 'twin.json'));
    expect(await printed(own(`agent apply ${folder} --prune`))).toMatch(/^left +1 +retired +retired/m);
    expect(await states()).toEqual(['kept published 2', 'left retired 1', 'new published 1']);
    expect(await sentence(own('agent apply'), 2)).toBe('Name a definition file, or a folder of them');
    expect(await sentence(own(`agent apply ${join(folder, 'none.json')}`), 2)).toMatch(
      /^.*none\.json cannot be read: /,
    );
  });

  it('job: list shows all jobs; run runs the job of one service or of every service', async () => {
    const list: { service: string; name: string }[] = await json(admin('--json job list'));
    expect(list.map(({ service, name }) => `${service}/${name}`)).toEqual(
      expect.arrayContaining([
        'agents/reaper',
        'credits/sweeper',
        ...['auth', 'agents', 'memory', 'credits'].map((service) => `${service}/relay`),
      ]),
    );
    const [one, all] = await Promise.all([
      printed(admin('job run credits/sweeper')),
      json(admin('--json job run relay')),
    ]);
    expect(one).toMatch(/^Job +Ran +Done\ncredits\/sweeper +yes +0\n$/);
    expect(all.map(({ job, ran }: { job: string; ran: boolean }) => [job, ran])).toEqual(
      ['auth', 'agents', 'memory', 'credits'].map((service) => [`${service}/relay`, true]),
    );
  });

  it('job: list shows which jobs run on every replica, because they work on what a process holds in memory', async () => {
    const list: { service: string; name: string; everyReplica: boolean }[] = await json(admin('--json job list'));
    const onEvery = list.filter(({ everyReplica }) => everyReplica).map(({ service, name }) => `${service}/${name}`);
    const ON_EVERY_REPLICA = ['agents/denials', 'agents/settled', 'auth/denials', 'auth/last-used', 'memory/denials'];
    const WITH_MONGODB = ['agents/clock', 'auth/clock', 'credits/clock', 'memory/clock'];
    expect(onEvery.sort()).toEqual([...ON_EVERY_REPLICA, ...(stack.env.MONGODB_URL ? WITH_MONGODB : [])].sort());
    expect(await printed(admin('job list'))).toMatch(/^auth\/last-used +5 s +every replica +\w/m);
  });

  it('events: replay runs the dead-letters job of auth, here without dead letters', async () => {
    expect(await json(admin('--json events replay'))).toEqual([{ job: 'auth/dead-letters', ran: true, count: 0 }]);
    expect(await printed(admin('job list'))).toMatch(/^auth\/dead-letters +on request +one replica +\w/m);
  });

  it('audit: lists every change with its actor, newest first, or only one action', async () => {
    await printed(admin('job run denials'));
    interface Entry {
      id: string;
      targetType: string;
      targetId: string;
      action: string;
      outcome: string;
      at: string;
      actorKind: string;
      actorName: string;
      actorVia: string;
      count: number;
    }
    const actorOf = ({ actorKind, actorName, actorVia }: Entry): string =>
      [actorKind, actorName, ...(actorVia ? ['via', actorVia] : [])].join(' ');
    const all: Entry[] = await eventually(async () => {
      const found: Entry[] = await json(on('--json audit list --page-size 1000'));
      return (
        found.filter(({ outcome }) => outcome === 'denied').reduce((sum, { count }) => sum + count, 0) >= 5 && found
      );
    });
    const [denied, entries] = [
      all.filter(({ outcome }) => outcome === 'denied'),
      all.filter(({ outcome }) => outcome !== 'denied'),
    ];
    const denials = Map.groupBy(
      denied.flatMap((entry) => Array<string>(entry.count).fill(actorOf(entry))),
      (actor) => actor,
    );
    expect(Object.fromEntries(Array.from(denials, ([actor, { length }]) => [actor, length]))).toEqual({
      'server_token nightly': 1,
      [`user ${ADA}`]: 1,
      [`user eve@acme.example via ${OPERATOR}`]: 3,
    });
    const times = entries.map(({ at }) => at);
    expect(times).toEqual([...times].sort().reverse());
    const lines = entries.map((entry) => [entry.action, entry.outcome, actorOf(entry), entry.count].join(' '));
    expect(lines.filter((line) => line.startsWith('user.assume'))).toContain(
      `user.assume success operator ${OPERATOR} 1`,
    );
    expect(lines.filter((line) => !line.startsWith('user.assume')).sort()).toEqual([
      ...Array(2).fill(`agent.apply success operator ${OPERATOR} 1`),
      ...Array(3).fill(`agent.publish success operator ${OPERATOR} 1`),
      `agent.retire success operator ${OPERATOR} 1`,
      ...Array(2).fill('agent.run success server_token runs 1'),
      ...Array(2).fill(`credits.grant success operator ${OPERATOR} 1`),
      `grant.revoke success operator ${OPERATOR} 1`,
      `jwt.issue success operator ${OPERATOR} 1`,
      `organization.create success operator ${OPERATOR} 1`,
      ...Array(3).fill(`server_token.create success user ${ADA} via ${OPERATOR} 1`),
      ...Array(2).fill(`server_token.revoke success user ${ADA} via ${OPERATOR} 1`),
      ...Array(3).fill(`user.create success operator ${OPERATOR} 1`),
      `user.remove success operator ${OPERATOR} 1`,
      `user.set_groups success operator ${OPERATOR} 1`,
      ...Array(2).fill(`user.set_roles success operator ${OPERATOR} 1`),
    ]);
    const idsOf = async (filter: string): Promise<string[]> =>
      (await json(on(`--json audit list --page-size 1000 ${filter}`))).map(({ id }: { id: string }) => id);
    const [newest, runs] = [all[0]!, all.filter(({ actorName }) => actorName === 'runs')];
    expect(await idsOf('--actor runs')).toEqual(runs.map(({ id }) => id));
    expect(await idsOf(`--actor runs --since ${runs[0]!.at} --outcome success`)).toEqual([runs[0]!.id]);
    expect(await idsOf(`--resource ${newest.targetType}:${newest.targetId} --until 2020-01-01`)).toEqual([]);
    expect(await idsOf('--outcome denied')).toEqual(denied.map(({ id }) => id));
    expect(await sentence(on('audit list --resource agent'), 2)).toMatch(/^agent is not a resource/);
    expect(await sentence(on('audit list --action agent.dance'), 2)).toMatch(
      /Allowed choices are organization\.create/,
    );
    expect(await printed(admin(`--organization ${acme.id} audit list --action organization.create`))).toMatch(
      new RegExp(
        `organization\\.create +success +operator ${OPERATOR} +1 +organization ${acme.id} +name: acme; tier: enterprise\\n$`,
      ),
    );
  });

  it('audit: verify finds the trail whole, and export writes it once, going on where a file ends', async () => {
    const verified = await json(on('--json audit verify'));
    expect(verified).toMatchObject({ unchained: 0, faults: [] });
    expect(await printed(on(`audit verify --head ${verified.head}`))).toMatch(/^faults +0$/m);
    const forged = await on(`--json audit verify --head 2:${'0'.repeat(43)}`);
    expect([forged.code, JSON.parse(forged.stdout).faults]).toMatchObject([1, [{ kind: 'noted', sequence: 2 }]]);
    expect(forged.stderr).toMatch(/^The noted head 2 is not in the trail/);
    expect(await sentence(on('audit verify --head 2'), 2)).toMatch(/^2 is not a head/);

    const file = join(stack.folder, 'trail.ndjson');
    const lines = (text: string): { sequence: number; id: string }[] => {
      expect(text).toMatch(/\n$/);
      return text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as { sequence: number; id: string });
    };
    const whole = await on('audit export');
    expect(whole).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/^\d+ entries exported; the last is \d+\n$/),
    });
    const all = lines(whole.stdout);
    expect(all.map(({ sequence }) => sequence)).toEqual(all.map((_, index) => index + 1));
    expect(all.length).toBeGreaterThanOrEqual(verified.entries);
    expect(lines((await on(`audit export --after ${all.length - 2}`)).stdout)).toEqual(all.slice(-2));
    // An export was killed in the middle of the third line.
    const cut = whole.stdout.split('\n').slice(0, 3).join('\n').slice(0, -5);
    for (const begun of ['', cut, cut.slice(0, 20)]) {
      writeFileSync(file, begun);
      expect(await on(`audit export --file ${file}`)).toMatchObject({ code: 0, stdout: '' });
      expect(readFileSync(file, 'utf8')).toBe(whole.stdout);
    }
    expect((await on(`audit export --file ${file}`)).stderr).toMatch(/^0 entries exported; /m);
    expect(readFileSync(file, 'utf8')).toBe(whole.stdout);
    expect(await sentence(on(`audit export --file ${file} --after 2`), 2)).toMatch(/has entries already/);
    const other = await json(admin('--json organization create another --tier starter'));
    const ofOther = admin(`--organization ${other.id} audit export --file ${file}`);
    expect(await sentence(ofOther, 2)).toMatch(/is of another audit trail$/);
    writeFileSync(file, 'a file of somebody else\n');
    expect(await sentence(on(`audit export --file ${file}`), 2)).toMatch(/is not an export of an audit trail$/);
    expect(readFileSync(file, 'utf8')).toBe('a file of somebody else\n');
  });
});
