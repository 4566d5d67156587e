import { codeOf, ServiceError } from 'platform/core/errors.ts';
import { parseJson } from 'platform/core/parse-json.ts';
import type { CallOptions } from 'platform/rpc/call.ts';
import { AgentsServiceService, type Agent } from 'proto/agents/v1/agents.ts';
import { differencesOf, type Difference } from './agent-differences.ts';
import { publishAgent } from './publish-agent.ts';
import type { Context } from './context.ts';
import { definitionFilesOf, readDefinition, type DefinitionFile } from './definition-file.ts';
import { InputError } from './json-input.ts';
import type { Column } from './output.ts';
import { UsageError } from './usage-error.ts';

export interface ApplyOptions {
  publish?: boolean;
  dryRun?: boolean;
  prune?: boolean;
}

interface Fault {
  line: number;
  /** JSON pointer; empty when the whole file is at fault. */
  path: string;
  message: string;
}

/** What became of a file, or of an agent that no file defines. */
interface Row {
  file?: string;
  name?: string;
  outcome: 'added' | 'changed' | 'unchanged' | 'retired' | 'failed';
  version?: number;
  changed?: boolean;
  state?: string;
  differences?: Difference[];
  code?: string;
  faults?: Fault[];
}

const COLUMNS: readonly Column<Row>[] = [
  { title: 'Name', value: (row) => row.name, narrowed: 'last' },
  { title: 'Version', value: (row) => row.version },
  { title: 'Outcome', value: (row) => row.outcome },
  { title: 'State', value: (row) => row.state },
  {
    title: 'Members',
    value: ({ differences = [] }) =>
      differences.map(({ path, change }) => `${SIGNS[change]}${path}`).join(' ') || undefined,
  },
  { title: 'File', value: (row) => row.file },
];
const SIGNS = { added: '+', removed: '-', changed: '~' } as const;

/**
 * Applies definition files one after the other; one that has faults does not stop the others. Prints a row for each,
 * and its faults on standard error. The exit code is 1 if any has failed.
 * @throws UsageError for paths that name no file
 */
export async function applyAgents(context: Context, paths: readonly string[], options: ApplyOptions): Promise<void> {
  if (paths.length === 0) throw new UsageError('Name a definition file, or a folder of them');
  const files = paths.flatMap((path) => definitionFilesOf(context.pathOf(path), path));
  const call = await context.onOrganization();
  const agents = context.client(AgentsServiceService, 'agents');
  const before = new Map((await agents.listAgents({}, call)).agents.map((agent) => [agent.name, agent]));
  const fileOf = new Map<string, string>();
  const rows: Row[] = [];
  for (const { path, shown } of files) {
    const row = await applyFile(path, shown);
    rows.push(row);
    for (const { line, path: member, message } of row.faults ?? [])
      context.note(`${shown}:${line}: ${member === '' ? '' : `${member}: `}${message}`);
  }
  const failed = rows.some(({ outcome }) => outcome === 'failed');
  if (options.prune && failed) context.note('No agent was retired, because a file has faults');
  else if (options.prune) rows.push(...(await retireOthers()));
  context.print(rows, COLUMNS);
  if (options.dryRun) context.note('Nothing was changed');
  if (failed) process.exitCode = 1;

  async function applyFile(path: string, shown: string): Promise<Row> {
    let file: DefinitionFile | undefined;
    try {
      file = readDefinition(path, shown);
      const twin = fileOf.get(file.name);
      if (twin !== undefined)
        throw new InputError(shown, {
          ...{ line: file.lineOf('/name'), path: '' },
          message: `${twin} defines ${file.name}, too`,
        });
      fileOf.set(file.name, shown);
      return { file: shown, ...(await applyDefinition(file)) };
    } catch (error) {
      return { file: shown, name: file?.name, outcome: 'failed', ...failureOf(error, file) };
    }
  }

  async function applyDefinition({ text, name, value }: DefinitionFile): Promise<Row> {
    const applied = await agents.applyAgent({ definition: text, dryRun: options.dryRun ?? false }, call);
    const { version, changed } = applied;
    const earlier = before.get(name);
    const differences = changed && earlier ? await differencesFrom(earlier, value, call) : undefined;
    let agent = applied.agent;
    if (options.publish && !options.dryRun) agent = await publishAgent(context, { name, version }, call);
    const outcome = !earlier ? 'added' : changed ? 'changed' : 'unchanged';
    return { name, outcome, version, changed, state: agent?.state, differences };
  }

  async function differencesFrom(earlier: Agent, value: unknown, options: CallOptions): Promise<Difference[]> {
    const { name, latestVersion: version } = earlier;
    const { definition } = await agents.getAgentVersion({ name, version }, options);
    return differencesOf(parseJson(definition), value);
  }

  async function retireOthers(): Promise<Row[]> {
    const others = [...before.values()].filter(({ name, state }) => state !== 'retired' && !fileOf.has(name));
    const retired: Row[] = [];
    for (const { name, latestVersion: version, state } of others) {
      const agent = options.dryRun ? undefined : (await agents.retireAgent({ name }, call)).agent;
      retired.push({ name, outcome: 'retired', version, state: agent?.state ?? state });
    }
    return retired;
  }
}

/** @throws what concerns no single file */
function failureOf(error: unknown, file: DefinitionFile | undefined): { code: string; faults: Fault[] } {
  if (error instanceof InputError)
    return { code: 'invalid_file', faults: [{ line: error.line, path: error.path, message: error.fault }] };
  if (error instanceof UsageError)
    return { code: 'invalid_file', faults: [{ line: 1, path: '', message: error.message }] };
  if (!(error instanceof ServiceError)) throw error;
  const details = error.details.length > 0 ? error.details : [{ path: '', message: error.message }];
  return {
    code: codeOf(error.reason),
    faults: details.map(({ path, message }) => ({ line: file?.lineOf(path) ?? 1, path, message })),
  };
}
