import { Command } from 'commander';
import { parseJson } from 'platform/core/parse-json.ts';
import { AgentsServiceService, type Agent, type AgentVersion } from 'proto/agents/v1/agents.ts';
import { applyAgents, type ApplyOptions } from './agent-apply.ts';
import { differencesOf, type Difference } from './agent-differences.ts';
import { readDefinition } from './definition-file.ts';
import type { Context } from './context.ts';
import { readJsonInput } from './json-input.ts';
import { StoredJson, type Column } from './output.ts';
import { publishAgent } from './publish-agent.ts';
import { collected, wholeNumber } from './usage-error.ts';

const AGENTS: readonly Column<Agent>[] = [
  { title: 'Name', value: (row) => row.name, narrowed: 'last' },
  { title: 'State', value: (row) => row.state },
  { title: 'Published', value: (row) => row.publishedVersion },
  { title: 'Newest', value: (row) => row.latestVersion },
  { title: 'Updated', value: (row) => row.updatedAt },
];
const VERSIONS: readonly Column<AgentVersion>[] = [
  { title: 'Version', value: (row) => row.version },
  { title: 'Created', value: (row) => row.createdAt },
  { title: 'By', value: (row) => row.createdBy },
  { title: 'Hash', value: (row) => row.hash.slice(0, 12) },
];

const DIFFERENCES: readonly Column<Difference>[] = [
  { title: 'Member', value: (row) => row.path, narrowed: 'last' },
  { title: 'Change', value: (row) => row.change },
  { title: 'Before', value: (row) => row.before },
  { title: 'After', value: (row) => row.after },
];
const VERSION_TO_READ = ['--version <n>', 'default: the published one, or else the newest'] as const;

export function agentCommand(context: Context): Command {
  const agents = () => context.client(AgentsServiceService, 'agents');
  const command = new Command('agent').description(
    'functional agents: apply definitions, compare, publish and list versions',
  );
  command
    .command('apply [paths...]')
    .description(
      'store each definition file, or each *.json of a folder, as a draft version; an unchanged one creates no version',
    )
    .option('-f, --file <path>', 'the same as an argument; repeat it', collected, [])
    .option('--publish', 'also publish the versions')
    .option('--dry-run', 'check the files and show what would change; nothing is changed')
    .option('--prune', 'retire the agents that no file defines')
    .action((paths: string[], { file, ...options }: { file: string[] } & ApplyOptions) =>
      applyAgents(context, [...paths, ...file], options),
    );
  command
    .command('publish <name>')
    .description('publish a version, which makes it the one that runs; to roll back, publish an older version')
    .option(
      '--version <n>',
      'default: the newest, or of a retired agent the one that was published',
      wholeNumber(1, 1e9),
    )
    .action(async (name: string, { version }: { version?: number }) =>
      context.printRecord(await publishAgent(context, { name, version }, await context.onOrganization())),
    );
  command
    .command('retire <name>')
    .description('remove the agent from the API; its executions are kept')
    .action(async (name: string) =>
      context.printRecord((await agents().retireAgent({ name }, await context.onOrganization())).agent as Agent),
    );
  command
    .command('list')
    .description('list the agents, by name')
    .action(async () => context.print((await agents().listAgents({}, await context.onOrganization())).agents, AGENTS));
  command
    .command('versions <name>')
    .description('list the versions of an agent, newest first')
    .action(async (name: string) =>
      context.print((await agents().listAgentVersions({ name }, await context.onOrganization())).versions, VERSIONS),
    );
  command
    .command('show <name>')
    .description('print the definition of a version as its author wrote it')
    .option(...VERSION_TO_READ, wholeNumber(1, 1e9))
    .action(async (name: string, given: { version?: number }) => {
      const { version, definition } = await agents().getAgentVersion(
        { name, version: given.version },
        await context.onOrganization(),
      );
      context.printJson(definition, { name, ...version, definition: new StoredJson(definition) });
    });
  command
    .command('diff <file>')
    .description('compare a definition file with a version of its agent, member by member; nothing is changed')
    .option(...VERSION_TO_READ, wholeNumber(1, 1e9))
    .action(async (file: string, given: { version?: number }) => {
      const { name, value } = readDefinition(context.pathOf(file), file);
      const { definition } = await agents().getAgentVersion(
        { name, version: given.version },
        await context.onOrganization(),
      );
      context.print(differencesOf(parseJson(definition), value), DIFFERENCES);
    });
  command
    .command('run <name>')
    .description('run the published version once, as the operator or with --as as a user, and print its output')
    .option('--args <json>', 'the args as JSON, or - to read them from standard input', '{}')
    .option('--idempotency-key <key>', 'a repeat with the same key prints the first answer and runs nothing')
    .action(async (agentName: string, given: { args: string; idempotencyKey?: string }) => {
      const { json } =
        given.args === '-'
          ? readJsonInput(await context.readInput('Type the args, then press Ctrl-D.'), 'standard input')
          : readJsonInput(Buffer.from(given.args), '--args');
      const { output, messages, ...run } = await agents().runAgent(
        { agentName, args: json.toString(), idempotencyKey: given.idempotencyKey },
        await context.asUserOrOperator(),
      );
      context.printJson(output, { ...run, output: new StoredJson(output), messages });
      context.note(`Charged ${run.creditsCharged} credits; agent execution ${run.agentExecutionId}`);
    });
  return command;
}
