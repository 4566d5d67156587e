import { spawnSync } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { newId } from 'platform/core/ids.ts';
import { keyFolderOf } from 'platform/rpc/keys.ts';
import { operatorName } from 'platform/rpc/peer-name.ts';
import { REPOSITORY, startStack, type Stack } from '../support/stack.ts';
import type { Tenant } from '../support/tenant.ts';
import { commandLine, json, printed, sentence, type CommandLine } from './admin-command.ts';

const NOUNS = {
  organization: ['create', 'list', 'deactivate', 'activate', 'tier'],
  user: ['create', 'list', 'set-roles', 'set-groups', 'remove'],
  token: ['create', 'list', 'rotate', 'revoke'],
  credits: ['grant', 'balance', 'rebuild', 'ledger'],
  agent: ['apply', 'publish', 'retire', 'list', 'versions', 'run'],
  secret: ['set', 'list', 'delete'],
  audit: ['list', 'verify', 'export'],
  events: ['replay'],
  job: ['list', 'run'],
  jwt: ['issue', 'list', 'revoke', 'rotate-key'],
  keys: ['create', 'rotate', 'revoke', 'rotate-master', 'retire-master'],
};

describe('the admin command line: usage, errors and output', () => {
  let stack: Stack;
  let tenant: Tenant;
  let admin: CommandLine;
  beforeAll(async () => {
    stack = await startStack();
    tenant = await stack.tenant({ credits: 1 });
    admin = commandLine(stack.env);
  });
  afterAll(() => stack.stop());

  const on = (words: string, env?: Record<string, string>) => admin(`--organization ${tenant.name} ${words}`, env);
  const asAdministrator = (words: string, env?: Record<string, string>) =>
    on(`--as ${tenant.administrator} ${words}`, env);

  it('prints help for each level on standard output, also when no service runs', async () => {
    const noStack = commandLine({ AUTH_ADDRESS: '127.0.0.1:1' });
    const top = await printed(noStack('--help'));
    for (const noun of Object.keys(NOUNS)) expect(top).toMatch(new RegExp(`^ {2}${noun} {2,}\\w`, 'm'));
    const helps = await Promise.all(Object.keys(NOUNS).map((noun) => printed(noStack(`${noun} --help`))));
    Object.values(NOUNS).forEach((verbs, i) => {
      for (const verb of verbs) expect(helps[i]).toMatch(new RegExp(`^ {2}${verb}( .*)? {2,}\\w`, 'm'));
    });
    expect(await printed(noStack('agent publish --help'))).toMatch(/<name>[^]*--version <n> +default: the newest/);
  });

  it('exits with 2 on wrong usage', async () => {
    const wrong = await Promise.all([
      admin(''),
      admin('token'),
      admin('frobnicate'),
      admin('organization frobnicate'),
      admin('organization list --frobnicate'),
      admin('organization create'),
    ]);
    expect(wrong.map(({ code, stdout, stderr }) => [code, stdout, stderr === ''])).toEqual(
      wrong.map(() => [2, '', false]),
    );
    expect(
      await Promise.all([
        sentence(admin('credits balance'), 2),
        sentence(on('credits grant much'), 2),
        sentence(on('credits grant 0'), 2),
        sentence(on('audit list --page-size 0'), 2),
        sentence(asAdministrator('credits balance'), 2),
        sentence(admin('--operator ../ada job list'), 2),
        sentence(on('agent apply /nowhere/agent.json'), 2),
      ]),
    ).toEqual([
      'The option --organization <name-or-id> is required',
      'much is not an amount of credits',
      '0 is not an amount of credits',
      '0 is not a whole number from 1 to 1000',
      '--as applies only to agent run and the token commands; all other commands act as the operator',
      '../ada is not a valid operator name; it may have letters, digits and . _ @ -',
      expect.stringMatching(/^\/nowhere\/agent\.json cannot be read: ENOENT/),
    ]);
  });

  it('with --json a failure is JSON on standard error, with the code of the error', async () => {
    const failures = [
      admin('--json --organization nobody credits balance'),
      on('--json user create nobody'),
      admin('--json credits balance'),
      admin('--json organization tier'),
      admin('--json nonsense'),
    ];
    const results = await Promise.all(failures);
    expect(results.map(({ code, stdout, stderr }) => [code, stdout, JSON.parse(stderr)])).toEqual([
      [1, '', { error: 'Organization not found', code: 'not_found' }],
      [
        1,
        '',
        {
          error: 'email must be an email address',
          code: 'invalid_request',
          details: [{ path: '/email', message: 'email must be an email address' }],
        },
      ],
      [2, '', { error: 'The option --organization <name-or-id> is required', code: 'usage' }],
      [2, '', { error: 'Name an organization and its new tier, or use --list', code: 'usage' }],
      [2, '', { error: "unknown command 'nonsense'", code: 'usage' }],
    ]);
  });

  it('exits with 1 and one sentence when something is unknown, exists already or is not allowed', async () => {
    expect(
      await Promise.all([
        sentence(admin('--organization nobody credits balance')),
        sentence(admin(`organization tier ${newId()} starter`)),
        sentence(on('--as nobody@example.com token list')),
        sentence(on('user remove nobody@example.com')),
        sentence(asAdministrator('token revoke nothing')),
        sentence(on('agent publish nothing')),
        sentence(on('agent versions nothing')),
        sentence(on('agent show nothing')),
        sentence(admin('job run nothing')),
        sentence(admin(`organization create ${tenant.name}`)),
        sentence(asAdministrator('token create tests')),
        sentence(on('user create nobody')),
      ]),
    ).toEqual([
      'Organization not found',
      'Organization not found',
      'User not found',
      'User not found',
      'Server token not found',
      'Agent not found',
      'Agent not found',
      'Agent not found',
      'There is no job "nothing"; "job list" shows all jobs',
      'An organization of this name exists',
      'A server token of this name exists',
      'email must be an email address',
    ]);
  });

  it('names a missing certificate, a revoked one, one of another authority, and a service that does not answer', async () => {
    expect(await sentence(admin('--operator other job list'))).toBe(
      `The certificate of operator:other is missing: there is no ${stack.folder}/keys/operator-other.pem; check DATA_DIR, or make it with "npm run admin -- keys create"`,
    );
    expect(await admin('--operator other keys create')).toMatchObject({ code: 0, stderr: '' });
    expect(await admin('--operator other organization list')).toMatchObject({ code: 0, stderr: '' });

    const copied = join(stack.folder, 'copied');
    cpSync(keyFolderOf(stack.folder), keyFolderOf(copied), { recursive: true });
    expect(await admin('keys revoke other')).toMatchObject({ code: 0, stderr: '' });
    stack.publishKeys();
    expect(await sentence(admin('--operator other organization list', { DATA_DIR: copied }))).toBe(
      'The certificate of operator:other is revoked',
    );
    expect(await sentence(admin('--operator other keys create'))).toBe(
      `operator:other is revoked (${stack.folder}/keys/revoked.txt), and no other may have its name`,
    );

    const foreign = join(stack.folder, 'foreign');
    expect(await admin('keys create', { DATA_DIR: foreign })).toMatchObject({ code: 0 });
    expect(await sentence(admin('organization list', { DATA_DIR: foreign }))).toBe(
      `auth does not answer at ${stack.env.AUTH_ADDRESS}: it and ${operatorName()} do not accept each other's certificates`,
    );
    expect(await sentence(admin('organization list', { AUTH_ADDRESS: '127.0.0.1:1' }))).toBe(
      'auth does not answer at 127.0.0.1:1: is it running?',
    );
  });

  it('prints one line a row: whole in a pipe and with --wide, else as wide as the terminal, with the ends of ids', async () => {
    const narrow = { COLUMNS: '80' };
    const [piped, wide, cut] = await Promise.all([
      printed(asAdministrator('token list')),
      printed(asAdministrator('--wide token list', narrow)),
      printed(asAdministrator('token list', narrow)),
    ]);
    const id = /^tests +(\S{36}) /m.exec(piped)?.[1] as string;
    expect([wide, piped.split('\n').length, cut.split('\n').length]).toEqual([piped, 3, 3]);
    expect(Math.max(...cut.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
    expect(cut).toMatch(new RegExp(` …[\\w-]*${id.slice(-12)} `));
  });

  it('says what became of the options of user create for a user that is known already', async () => {
    const other = await stack.tenant();
    const email = `grace@${tenant.name}.example`;
    await printed(on(`user create ${email} --name Grace`));
    const again = on(`user create ${email} --role admin`);
    expect(await sentence(again)).toBe(
      'The organization has a user of this email; nothing was changed. ' +
        'user set-roles and user set-groups change what it has',
    );
    const there = await admin(`--organization ${other.name} user create ${email} --name Hopper --role admin`);
    expect(there).toMatchObject({
      code: 0,
      stderr:
        `${email} is a user of another organization, too: it keeps the name Grace, so --name was not used, ` +
        'and has here the roles admin and the groups -.\n',
    });
    expect(there.stdout).toMatch(/^roles +admin$/m);
  });

  it('takes no argument and no option for the value of an option', async () => {
    const email = `linus@${tenant.name}.example`;
    const user = await json(on(`--json user create --role admin --role security_admin --group a ${email}`));
    expect(user).toMatchObject({ email, roles: ['admin', 'security_admin'], groups: ['a'] });
    expect(await sentence(on('credits grant 1 --note --id'), 2)).toBe(
      '--note needs a value; write --note=--id if that is the value',
    );
    expect(await sentence(admin(`organization tier ${tenant.name} gold`), 2)).toMatch(
      /Allowed choices are starter, professional, enterprise/,
    );
    expect(await sentence(admin('organization tier --list acme starter'), 2)).toBe(
      '--list shows all tiers and takes no organization',
    );
    expect(await sentence(asAdministrator('token create x --expires-at 2030-02-31'), 2)).toMatch(/is not a time/);
  });

  it('prints no control characters of stored text', async () => {
    await printed(
      admin(['--organization', tenant.name, 'credits', 'grant', '1', '--note', 'a\u001b[31mred\u009bm\u202e']),
    );
    const { stdout } = await on('credits ledger');
    expect(stdout).not.toContain('\u001b');
    const json = (await on('--json credits ledger')).stdout;
    expect(JSON.parse(json)).toContainEqual(expect.objectContaining({ note: 'a\u001b[31mred\u009bm\u202e' }));
    expect(json).not.toMatch(/[^\P{C}\n]/u);
    const refused = await admin(['agent', 'apply', '-f', 'a\u001b[31mred']);
    expect([refused.code, refused.stderr]).toEqual([expect.any(Number), expect.not.stringContaining('\u001b')]);
  });

  it('prints on standard error how to get the next page, if there is one; the pages show each row once', async () => {
    for (const name of ['one', 'two']) await printed(asAdministrator(`token create ${name}`));
    const seen: string[] = [];
    for (let words = '--json token list --page-size 2'; ;) {
      const { code, stdout, stderr } = await asAdministrator(words);
      expect(code).toBe(0);
      seen.push(...JSON.parse(stdout).map(({ name }: { name: string }) => name));
      if (stderr === '') break;
      words = `--json token list --page-size 2 ${/^There are more: (--after \S+)\n$/.exec(stderr)?.[1]}`;
    }
    expect(seen).toEqual(['two', 'one', 'tests']);
    expect(await on('audit list --page-size 2')).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/^There are more: --before \S+\n$/),
    });
    expect((await json(asAdministrator('--json token list --page-size 3'))).length).toBe(3);
  });

  it('ends quietly when its output pipe is closed early', () => {
    const shell = spawnSync(
      'sh',
      [
        '-c',
        `"${process.execPath}" "${join(REPOSITORY, 'admin/src/main.ts')}" --organization ${tenant.name} audit list | head -n 1`,
      ],
      { encoding: 'utf8', env: { ...process.env, NODE_OPTIONS: '', ...stack.env } },
    );
    expect(shell).toMatchObject({ status: 0, stderr: '', stdout: expect.stringMatching(/^Time +Action .*\n$/) });
  });

  it('rotates a token with an overlap, and lists tokens that are unused for a time', async () => {
    const { value, id } = await json(asAdministrator('--json token create rotated'));
    const rotated = await json(asAdministrator('--json token rotate rotated --overlap 1h'));
    expect(rotated).toMatchObject({ name: 'rotated', value: expect.stringMatching(/^aks_/) });
    expect([rotated.value === value, rotated.id === id]).toEqual([false, false]);
    const tokens: { id: string; expiresAt?: string }[] = await json(asAdministrator('--json token list'));
    expect(tokens.find((token) => token.id === id)?.expiresAt).toBeDefined();
    expect(await json(asAdministrator('--json token list --unused-for 30d'))).toEqual([]);
    const wrong = await Promise.all(
      ['rotate rotated --overlap 31d', 'rotate rotated --overlap 1', 'list --unused-for soon'].map((words) =>
        asAdministrator(`token ${words}`),
      ),
    );
    expect(wrong.map(({ code }) => code)).toEqual([2, 2, 2]);
  });
});
