import { Command } from 'commander';
import { readFileSync } from 'node:fs';
import { AgentsServiceService, type Agent, type AgentVersion } from 'proto/agents/v1/agents.ts';
import { differencesOf, type Difference } from './agent-differences.ts';
import type { Context } from './context.ts';
import type { Column } from './output.ts';
import { UsageError, wholeNumber } from './usage-error.ts';

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
    .command('apply <files...>')
    .description('store each definition file as a draft version; an unchanged definition creates no new version')
    .option('--publish', 'also publish the version')
    .action(async (files: string[], { publish }: { publish?: boolean }) => {
      const options = await context.onOrganization();
      const rows: { name: string; version: number; changed: boolean; state: string }[] = [];
      for (const file of files) {
        const { agent, version, changed } = await agents().applyAgent(
          { definition: readDefinition(context.pathOf(file)) },
          options,
        );
        const { name, state } = agent as Agent;
        if (publish) await agents().publishAgent({ name, version }, options);
        rows.push({ name, version, changed, state: publish ? 'published' : state });
      }
      context.print(rows, [
        { title: 'Name', value: (row) => row.name },
        { title: 'Version', value: (row) => row.version },
        { title: 'Changed', value: (row) => (row.changed ? 'yes' : 'no') },
        { title: 'State', value: (row) => row.state },
      ]);
    });
  command
    .command('publish <name>')
    .description('publish a version, which makes it the one that runs; to roll back, publish an older version')
    .option(
      '--version <n>',
      'default: the newest, or of a retired agent the one that was published',
      wholeNumber(1, 1e9),
    )
    .action(async (name: string, { version }: { version?: number }) =>
      context.printRecord(
        (await agents().publishAgent({ name, version }, await context.onOrganization())).agent as Agent,
      ),
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
      context.printText(definition, { name, ...version, definition: JSON.parse(definition) as object });
    });
  command
    .command('diff <file>')
    .description('compare a definition file with a version of its agent, member by member; nothing is changed')
    .option(...VERSION_TO_READ, wholeNumber(1, 1e9))
    .action(async (file: string, given: { version?: number }) => {
      const after = parseDefinition(file, readDefinition(context.pathOf(file)));
      const { definition } = await agents().getAgentVersion(
        { name: after.name, version: given.version },
        await context.onOrganization(),
      );
      context.print(differencesOf(JSON.parse(definition), after), DIFFERENCES);
    });
  return command;
}

/** @throws UsageError for a file that is not JSON, or names no agent */
function parseDefinition(file: string, text: string): { name: string } {
  let definition: { name?: unknown } | null;
  try {
    definition = JSON.parse(text) as typeof definition;
  } catch (error) {
    throw new UsageError(`${file} is not JSON: ${(error as Error).message}`);
  }
  if (typeof definition?.name !== 'string') throw new UsageError(`${file} has no name of an agent`);
  return definition as { name: string };
}

function readDefinition(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new UsageError(`${file} cannot be read: ${(error as Error).message}`);
  }
}
