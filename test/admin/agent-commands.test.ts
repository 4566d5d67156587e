import { userInfo } from 'node:os';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { newId } from 'platform/core/ids.ts';
import { eventually } from 'platform/service/test-end.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { RunningStack } from '../support/stack.ts';
import { expressionAgent } from '../support/tenant.ts';
import { commandLine, json, printed, sentence, type CommandLine } from './admin-command.ts';

const OPERATOR = userInfo().username;

describe('the commands about agents, their executions and their secrets', () => {
  let stack: RunningStack;
  let admin: CommandLine;
  let organization: string;
  beforeAll(async () => {
    stack = await sharedStack();
    admin = commandLine(stack.env);
    organization = (await stack.tenant()).name;
  });
  const on = (words: string) => admin(`--organization ${organization} ${words}`);

  it('agent run: an operator tries an agent, by itself or as a user, and it is charged and recorded like every run', async () => {
    const tenant = await stack.tenant({ credits: 10, agents: [expressionAgent('tried', '{ "got": n }')] });
    const run = (words: string, input?: string) =>
      admin(['--organization', tenant.name, ...words.split(' '), '--args', input ? '-' : '{"n":1}'], {}, input);
    const byOperator = await run('agent run tried');
    expect(byOperator).toMatchObject({ code: 0, stdout: '{"got":1}\n' });
    expect(byOperator.stderr).toMatch(/^Charged 1 credits; agent execution [\w-]{36}\n$/);
    const byUser = await run(`--as ${tenant.administrator} --json agent run tried`, '{"n":2}');
    expect(JSON.parse(byUser.stdout)).toMatchObject({ success: true, output: { got: 2 }, creditsCharged: '1' });
    expect(await json(admin(`--organization ${tenant.name} --json execution list`))).toMatchObject([
      { status: 'succeeded', charge: 1, actor: { kind: 'user', name: tenant.administrator } },
      { status: 'succeeded', charge: 1, actor: { kind: 'operator', name: OPERATOR } },
    ]);
    expect((await json(admin(`--organization ${tenant.name} --json credits balance`))).spentMicros).toBe(2e6);
    expect((await run('agent run nothing')).stderr).toBe('Agent not found\n');
  });

  it('agent publish says when the API cannot run what is published', async () => {
    const small = await stack.tenant({ tier: 'starter' });
    const file = join(stack.folder, `${newId()}.json`);
    const publish = async (organization: string, more: object) => {
      const name = `a${newId()}`;
      writeFileSync(file, JSON.stringify({ ...expressionAgent(name, '1'), ...more }));
      expect((await admin(`--organization ${organization} agent apply ${file}`)).code).toBe(0);
      const { code, stderr } = await admin(`--organization ${organization} agent publish ${name}`);
      return [code, stderr.replace(name, 'it')];
    };
    expect(await publish(organization, {})).toEqual([0, '']);
    expect(await publish(organization, { kind: 'ConversationalAgent' })).toEqual([
      0,
      'The API cannot run it: it is conversational, or it needs interactive tools\n',
    ]);
    expect(await publish(small.name, {})).toEqual([
      0,
      'The API cannot run it: the tier of the organization does not include agents\n',
    ]);
    rmSync(file);
  });

  it('execution: list with filters, show and cancel work', async () => {
    const tenant = await stack.tenant({ credits: 10, agents: [expressionAgent('traced', '{ "got": $ }')] });
    const own = (words: string) => admin(`--organization ${tenant.name} ${words}`);
    const run = await tenant.request('POST', '/api/agent/run', { agentName: 'traced', args: { n: 1 } });
    const id = run.body.agentExecutionId as string;
    expect(await json(own('--json execution list --agent traced --status succeeded --since 2020-01-01'))).toEqual([
      expect.objectContaining({ id, agent: 'traced', status: 'succeeded' }),
    ]);
    const [list, none, record, lines] = await Promise.all([
      printed(own('execution list')),
      printed(own('execution list --until 2020-01-01')),
      json(own(`--json execution show ${id}`)),
      printed(own(`execution show ${id}`)),
    ]);
    expect(list).toMatch(/^Created +Id +Agent +Status .*\n.* traced 1 +succeeded +1 /);
    expect(none).toBe('None.\n');
    expect(record).toMatchObject({ id, args: { n: 1 }, output: { got: { n: 1 } } });
    expect(lines).toMatch(/^output +\{"got":\{"n":1\}\}$/m);
    expect(await sentence(own(`execution cancel ${id}`))).toBe('The agent execution has ended');
  });

  it('execution cancel ends a run, whichever replica has it', async () => {
    const endless = expressionAgent('endless', '($f := function($n) { $f($n + 1) }; $f(0))', {
      limits: { wallMs: 300_000, maxSteps: 1_000_000_000 },
    });
    const tenant = await stack.tenant({ credits: 10, agents: [endless] });
    const run = tenant.requestOnce('POST', '/api/agent/run', { agentName: 'endless', args: {} });
    const own = (words: string) => admin(`--organization ${tenant.name} ${words}`);
    const [{ id }] = (await eventually(async () => {
      const running = await json(own('--json execution list --status running'));
      return running.length === 1 && running;
    })) as [{ id: string }];
    expect(await json(own(`--json execution cancel ${id}`))).toMatchObject({ id, status: 'running' });
    expect(await run).toMatchObject({ status: 500, body: { code: 'run_cancelled', agentExecutionId: id } });
    expect(await json(own(`--json execution show ${id}`))).toMatchObject({
      ...{ id, status: 'cancelled', charge: 0 },
      error: { code: 'run_cancelled' },
    });
  });

  it('agent publish after retire shows the version that it makes live, which is the one that was', async () => {
    const tenant = await stack.tenant({ agents: [expressionAgent('back', '1')] });
    const own = (words: string) => admin(`--organization ${tenant.name} ${words}`);
    const file = join(stack.folder, `${newId()}.json`);
    writeFileSync(file, JSON.stringify(expressionAgent('back', '2')));
    await printed(own(`agent apply ${file}`));
    rmSync(file);
    await printed(own('agent retire back'));
    expect(await printed(own('agent publish back'))).toMatch(/^publishedVersion +1$/m);
    await printed(own('agent retire back'));
    expect(await printed(own('agent publish back --version 2'))).toMatch(/^publishedVersion +2$/m);
  });

  it('secret: set from standard input, list and delete work, and none shows the value', async () => {
    const set = (words: string, input: string) =>
      admin(`--organization ${organization} secret set ${words}`, {}, input);
    expect(await json(set('signing --json', 'hunter2\n'))).toMatchObject({ name: 'signing' });
    expect(await printed(set('signing --overlap 1h', 'hunter3'))).toMatch(/^previousUntil +20/m);
    expect(await sentence(set('empty', '\n'), 2)).toBe('Standard input gives no secret');
    const shown = [await printed(on('secret list')), JSON.stringify(await json(on('--json secret list')))];
    expect(shown[0]).toMatch(/^Name +Created +Updated +Old value until\nsigning /);
    expect(shown.join()).not.toContain('hunter');
    expect(await json(on('--json secret delete signing'))).toEqual({ name: 'signing', deleted: true });
    expect(await sentence(on('secret delete signing'))).toBe('Secret not found');
  });
});
