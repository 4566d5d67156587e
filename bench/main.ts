import { parseArgs } from 'node:util';
import { countWork, measureAlone } from './commands/alone.ts';
import { compare } from './commands/compare.ts';
import { measureJson } from './commands/json.ts';
import { measureLimits } from './commands/limits.ts';
import { measureMetrics } from './commands/metrics.ts';
import { measureNeighbours } from './commands/neighbours.ts';
import { measureFixedRate } from './commands/rate.ts';
import { measureReplicas } from './commands/replicas.ts';
import { measureRevocation } from './commands/revocation.ts';
import { measureMemory, measureScale } from './commands/scale.ts';
import { measureRuntimes } from './commands/runtimes.ts';
import { measureSchemas } from './commands/schemas.ts';
import { measureSoak } from './commands/soak.ts';
import { measureStart } from './commands/start.ts';
import { measureTraces } from './commands/traces.ts';
import { SCENARIOS } from './load/scenarios.ts';
import { verdicts } from './measure/goals.ts';
import { addFindings, noFindings, type Findings } from './measure/report.ts';
import { DEFAULTS, ON_SERVERS, type Settings } from './settings.ts';
import { withSystems } from './systems/beside.ts';
import { realEngines } from './systems/engines.ts';

const HELP = `npm run bench -- <what> … [--objects N] [--connections N] [--rounds N] [--seconds N]
                        [--warm-up-seconds N]

Beside the baseline and stock express-gateway, in one run (one or more of):
${Object.entries(SCENARIOS)
  .map(([name, { title }]) => `  ${name.padEnd(10)} ${title}`)
  .join('\n')}
  alone      the latency of one connection; commits, RPCs, messages and events for one call
  rate       the latency at 60 % of the throughput at full load
  goals      get, list, create, run and alone

The product alone:
  scale      few objects beside many [--many-objects N]
  memory     the same for all that memory does, and a dry run over the many objects
  soak       constant load: memory, logs, outbox and audit trail in each minute [--minutes N]
  replicas   two of every process beside one, on real servers, at 30 % of what one answers
  runtimes   a run in each runtime, http and llm against an endpoint of this process
  metrics    get, create and run with metrics on beside off, as a ratio of CPU time
  revocation how soon a revoked token is refused under load
  neighbours how long a quick run takes while eight other organizations flood the runners
  start      seconds from start to the first 200, and memory of all processes
  json       CPU milliseconds of the gateway's threads for bodies of 1 MiB that are costly to read
  traces     CPU of a request without traces, with the default share of them, and with all
  limits     CPU microseconds of a request for its rate limits
  schemas    how many schemas of a folder are accepted, and why the others are not [--folder F]

With MONGODB_URL, REDIS_URL and KAFKA_BROKERS (npm run engines -- up) the scenarios also run on those servers, all with
fewer objects and connections. The last lines tell which goals were met. Exits with 1 if a request failed, or if
the events and the audit trail are not just what was changed.
`;

const OF_PRODUCT: Readonly<Record<string, (settings: Settings) => Promise<Findings>>> = {
  scale: measureScale,
  memory: measureMemory,
  soak: measureSoak,
  replicas: measureReplicas,
  runtimes: measureRuntimes,
  metrics: measureMetrics,
  revocation: measureRevocation,
  traces: measureTraces,
  neighbours: () => measureNeighbours().then(noFindings),
  start: () => measureStart().then(noFindings),
  json: () => measureJson().then(noFindings),
  limits: () => measureLimits().then(noFindings),
  schemas: ({ folder }) => Promise.resolve(measureSchemas(folder)).then(noFindings),
};
const GOALS = ['get', 'list', 'create', 'run', 'alone'];
const number = { type: 'string' } as const;

async function run(wanted: readonly string[], settings: Settings): Promise<Findings> {
  const findings = noFindings();
  const scenarios = wanted.filter((name) => Object.hasOwn(SCENARIOS, name));
  const isWanted = (name: string): boolean => wanted.includes(name);
  if (scenarios.length > 0 || isWanted('alone') || isWanted('rate'))
    await withSystems(settings, scenarios, async (systems, figures) => {
      Object.assign(findings.figures, figures);
      addFindings(
        findings,
        await compare(
          systems,
          scenarios.map((name) => SCENARIOS[name]!),
          settings,
        ),
      );
      if (isWanted('alone')) addFindings(findings, await measureAlone(systems, settings));
      if (isWanted('rate')) addFindings(findings, await measureFixedRate(systems, settings));
    });
  if (isWanted('alone')) addFindings(findings, await countWork(settings));
  for (const [name, measure] of Object.entries(OF_PRODUCT))
    if (isWanted(name)) addFindings(findings, await measure(settings));
  return findings;
}

/** @param onServers whether the scenarios also run on real servers */
function settingsOf(options: Readonly<Record<string, string | undefined>>, onServers: boolean): Settings {
  const given = Object.entries(options).map(([name, value]) => {
    if (!(Number(value) > 0)) throw new Error(`--${name} needs a number`);
    return [name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase()), Number(value)] as const;
  });
  return { ...DEFAULTS, ...(onServers && ON_SERVERS), ...Object.fromEntries(given) };
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130));

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    help: { type: 'boolean', short: 'h' },
    objects: number,
    connections: number,
    rounds: number,
    seconds: number,
    minutes: number,
    'warm-up-seconds': number,
    'many-objects': number,
    folder: { type: 'string', default: DEFAULTS.folder },
  },
});
const { help, folder, ...options } = values;
const wanted = positionals.flatMap((name) => (name === 'goals' ? GOALS : [name]));
const known = [...Object.keys(SCENARIOS), ...Object.keys(OF_PRODUCT), 'alone', 'rate'];
if (help || wanted.length === 0 || !wanted.every((name) => known.includes(name))) {
  process.stdout.write(HELP);
  if (!help) process.exitCode = 2;
} else {
  const settings = { ...settingsOf(options, (await realEngines()) !== undefined), folder };
  const { figures, failures } = await run(wanted, settings);
  process.stdout.write('\n');
  for (const failure of failures.slice(0, 20)) process.stdout.write(`failed: ${failure}\n`);
  if (failures.length > 0) {
    process.stdout.write(`${failures.length} failures in all\n`);
    process.exitCode = 1;
  }
  const { objects, connections } = settings;
  const ofGoals = settingsOf(
    {},
    wanted.every((name) => name === 'replicas'),
  );
  if (objects !== ofGoals.objects || connections !== ofGoals.connections)
    process.stdout.write(
      `at ${connections} connections and ${objects} objects, not at the load that the goals are for:\n`,
    );
  for (const line of verdicts(figures)) process.stdout.write(`${line}\n`);
}
