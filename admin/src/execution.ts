import { Command, Option } from 'commander';
import { AgentsServiceService, type AgentExecution, type AgentExecutionSummary } from 'proto/agents/v1/agents.ts';
import type { Context } from './context.ts';
import { StoredJson, type Column } from './output.ts';
import { time, wholeNumber } from './usage-error.ts';

const STATUSES = ['queued', 'running', 'succeeded', 'failed', 'cancelled', 'timed_out', 'interrupted'];

const COLUMNS: readonly Column<AgentExecutionSummary>[] = [
  { title: 'Created', value: (row) => row.createdAt },
  { title: 'Id', value: (row) => row.id, narrowed: 'id' },
  { title: 'Agent', value: (row) => `${row.agent} ${row.agentVersion}`, narrowed: 'last' },
  { title: 'Status', value: (row) => row.status },
  { title: 'Charge', value: (row) => row.charge },
  { title: 'Took', value: tookOf },
  { title: 'Actor', value: (row) => row.actor && `${row.actor.kind} ${row.actor.name}` },
];

interface ListOptions {
  agent?: string;
  status?: string;
  since?: string;
  until?: string;
  pageSize: number;
  cursor?: string;
}

export function executionCommand(context: Context): Command {
  const agents = () => context.client(AgentsServiceService, 'agents');
  const command = new Command('execution').description('agent executions: list them, show one, cancel one');
  command
    .command('list')
    .description('list the agent executions, newest first')
    .option('--agent <name>', 'only of this agent')
    .addOption(new Option('--status <status>', 'only with this status').choices(STATUSES))
    .option('--since <time>', 'recorded from this time on', time)
    .option('--until <time>', 'recorded before this time', time)
    .option('--page-size <n>', 'executions per page', wholeNumber(1, 100), 50)
    .option('--cursor <cursor>', 'the page after the one that printed this cursor')
    .action(async (options: ListOptions) => {
      const { items, nextCursor } = await agents().listAgentExecutions(options, await context.onOrganization());
      context.printPage({ rows: items, next: nextCursor }, COLUMNS, '--cursor');
    });
  command
    .command('show <id>')
    .description('show one agent execution with its args, output and messages')
    .action(async (id: string) => {
      const { agentExecution } = await agents().getAgentExecution({ id }, await context.onOrganization());
      const { messages, actor, ...execution } = agentExecution as AgentExecution;
      const record = { ...withJson(execution), messages, actor };
      context.printRecord(record, { ...execution, messages: messages.length, actor: `${actor?.kind} ${actor?.name}` });
    });
  command
    .command('cancel <id>')
    .description('ask for the end of an agent execution; it is charged what it has used')
    .action(async (id: string) => {
      const { agentExecution } = await agents().cancelAgentExecution({ id }, await context.onOrganization());
      const { actor, ...execution } = agentExecution as AgentExecutionSummary;
      context.printRecord({ ...withJson(execution), actor }, { ...execution, actor: `${actor?.kind} ${actor?.name}` });
    });
  return command;
}

/** The record, whose members that are JSON text are printed as JSON. */
function withJson(execution: object): object {
  const texts = new Set(['args', 'output', 'error', 'usage']);
  return Object.fromEntries(
    Object.entries(execution).map(([name, value]) => [
      name,
      texts.has(name) && typeof value === 'string' ? new StoredJson(value) : value,
    ]),
  );
}

/** "1.25 s"; undefined until the run has ended. */
function tookOf({ startedAt, finishedAt }: AgentExecutionSummary): string | undefined {
  if (startedAt === undefined || finishedAt === undefined) return undefined;
  return `${((Date.parse(finishedAt) - Date.parse(startedAt)) / 1_000).toFixed(2)} s`;
}
