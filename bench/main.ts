import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { temporaryFolder } from 'platform/service/testing.ts';
import { expressionAgent, startStack, untilPrinted, type Stack, type Tenant } from '../test/support/stack.ts';
import { realEngines } from './engines.ts';
import { measureJson } from './json.ts';
import { measure, type Measured, type Target } from './load.ts';
import { measureNeighbours } from './neighbours.ts';
import { measureStart } from './start.ts';

interface Size {
  objects: number;
  connections: number;
}
const SIZE: Size = { objects: 10_000, connections: 64 };
/** Smaller, because SecantusDB is one Python process that sorts all objects of a type for every page of a list. */
const SIZE_ON_SERVERS: Size = { objects: 1_000, connections: 8 };
const ROUNDS = 3;
const ROUND_S = 5;
const PROCESS_NAMES = ['gateway', 'auth', 'agents', 'memory', 'credits'] as const;
const sizeText = ({ connections, objects }: Size): string =>
  `${connections} connections, ${objects.toLocaleString('en')} objects`;
const HELP = `npm run bench -- <what>
  get, list, create, run   (one or more) requests per second and CPU microseconds per request of each process, beside the
                           baseline (fastify on the same store) in the same run: ${sizeText(SIZE)}.
                           With MONGODB_URL, REDIS_URL and KAFKA_BROKERS (npm run engines -- up) also on those servers:
                           ${sizeText(SIZE_ON_SERVERS)}
  neighbours               how long a quick run takes while eight other organizations flood the runners
  start                    seconds from start to the first 200, and memory (PSS) of all processes
  json                     CPU milliseconds of the gateway's threads for bodies of 1 MiB that are costly to read
`;

interface ScenarioSpec {
  method: 'GET' | 'POST';
  path(objectId: string): string;
  /** The path of the same request to the baseline. */
  baseline: string;
  body?(key: string): object;
}
/** The baseline, or the product on one set of engines. */
interface SystemUnderTest {
  name: string;
  urlOf(scenario: ScenarioSpec): string;
  /** Undefined for the baseline, which accepts any body. */
  authorization?: string;
  pids: Record<string, number>;
}
const scenarios = {
  get: { method: 'GET', path: (objectId: string) => `/api/memory/objects/${objectId}`, baseline: '/get' },
  list: { method: 'GET', path: () => '/api/memory/objects?type=item', baseline: '/list' },
  create: {
    method: 'POST',
    path: () => '/api/memory/objects',
    baseline: '/create',
    body: (key: string) => ({ type: 'item', key, content: contentOf(key) }),
  },
  run: {
    method: 'POST',
    path: () => '/api/agent/run',
    baseline: '/run',
    body: (key: string) => ({ agentName: 'echo', args: { key } }),
  },
} satisfies Record<string, ScenarioSpec>;
type Scenario = keyof typeof scenarios;
const contentOf = (key: string): object => ({
  name: `name of ${key}`,
  tags: ['a', 'b', 'c'],
  score: 4.5,
  nested: { active: true, note: null },
});

/**
 * Fills the baseline and the products with objects once, then measures each scenario in rounds that alternate between
 * them.
 */
async function compare(wanted: readonly Scenario[]): Promise<void> {
  const engines = await realEngines();
  const size = engines ? SIZE_ON_SERVERS : SIZE;
  const folder = temporaryFolder();
  const baselineProcess = fork(join(import.meta.dirname, 'baseline.ts'), [folder.path, String(size.objects)], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  let printed = '';
  baselineProcess.stdout?.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  const stacks: Stack[] = [];

  async function product(
    name: string,
    env: Record<string, string>,
    servers: Record<string, number>,
  ): Promise<SystemUnderTest> {
    const stack = await startStack({ env: { RUNS_AT_ONCE: '1000', RUN_QUEUE_LIMIT: '1000', ...env }, replicas: 1 });
    stacks.push(stack);
    const tenant = await stack.tenant({ credits: 1_000_000, agents: [expressionAgent('echo', '{ "echo": $ }')] });
    process.stderr.write(`filling ${name}\n`);
    const objectId = await fill(tenant, size);
    return {
      name,
      urlOf: ({ path }) => stack.baseUrl + path(objectId),
      authorization: `Bearer ${tenant.token}`,
      pids: { ...pidsOf(stack), ...servers },
    };
  }

  try {
    await untilPrinted(baselineProcess, () => printed, 'baseline at');
    const baselineUrl = /baseline at (\S+)/.exec(printed)?.[1] as string;
    const systems: SystemUnderTest[] = [
      {
        name: 'baseline',
        urlOf: ({ baseline }) => baselineUrl + baseline,
        pids: { baseline: baselineProcess.pid as number },
      },
      await product('embedded', {}, {}),
      ...(engines ? [await product(engines.name, { TEST_ENGINES: '1' }, engines.pids)] : []),
    ];
    for (const scenario of wanted)
      report(
        scenario,
        size,
        systems.map(({ name }) => name),
        await roundsOf(scenarios[scenario], size, systems),
      );
  } finally {
    const ended = once(baselineProcess, 'exit');
    baselineProcess.disconnect();
    await ended;
    folder.remove();
    for (const stack of stacks) await stack.stop();
  }
}

async function roundsOf(
  scenario: ScenarioSpec,
  { connections }: Size,
  systems: readonly SystemUnderTest[],
): Promise<Measured[]> {
  const { method, body } = scenario;
  const targets = systems.map(({ name, urlOf, authorization, pids }): Target => {
    const ownBody = authorization === undefined ? body && ((key: string) => ({ key })) : body;
    return {
      name,
      url: urlOf(scenario),
      method,
      headers: { 'content-type': 'application/json', ...(authorization && { authorization }) },
      body: ownBody,
      pids,
    };
  });
  for (const target of targets) await measure(target, connections, 2);
  const rounds: Measured[] = [];
  for (let round = 0; round < ROUNDS; round++)
    for (const target of targets) rounds.push(await measure(target, connections, ROUND_S));
  return rounds;
}

const pidsOf = (stack: Stack): Record<string, number> =>
  Object.fromEntries(PROCESS_NAMES.map((process) => [process, stack.pidOf(process)]));

/** Creates the memory type and its objects. @returns the id of one object */
async function fill(tenant: Tenant, { objects, connections }: Size): Promise<string> {
  const { status, text } = await tenant.request('POST', '/api/memory/types', {
    type: 'item',
    jsonSchema: { type: 'object', required: ['name'], properties: { name: { type: 'string' } } },
  });
  if (status !== 201) throw new Error(text);
  let next = 0;
  let id = '';
  await Promise.all(
    Array.from({ length: connections }, async () => {
      while (next < objects) {
        const key = `key-${next++}`;
        const reply = await tenant.request('POST', '/api/memory/objects', {
          type: 'item',
          key,
          content: contentOf(key),
        });
        if (reply.status !== 201) throw new Error(reply.text);
        id = reply.body.id;
      }
    }),
  );
  return id;
}

function report(
  scenario: Scenario,
  { objects, connections }: Size,
  names: readonly string[],
  rounds: readonly Measured[],
): void {
  const median = (values: number[]): number => values.sort((a, b) => a - b)[Math.floor(values.length / 2)] as number;
  const row = (title: string, cell: (own: Measured[]) => number | string): string =>
    `| ${[title, ...names.map((name) => cell(rounds.filter((round) => round.name === name)))].join(' | ')} |\n`;
  const number = (title: string, of: (round: Measured) => number): string => row(title, (own) => median(own.map(of)));
  process.stdout.write(
    `\n${scenario}: ${connections} connections, ${objects} objects, ` +
      `median of ${ROUNDS} interleaved rounds of ${ROUND_S} s\n\n` +
      `| | ${names.join(' | ')} |\n|---|${names.map(() => '--:|').join('')}\n`,
  );
  process.stdout.write(
    number('req/s', (r) => r.requestsPerSecond) +
      number('p50 ms', (r) => r.p50Ms) +
      number('p99 ms', (r) => r.p99Ms) +
      number('failed', (r) => r.failed),
  );
  process.stdout.write(
    row('CPU µs/req', (own) =>
      Object.keys((own[0] as Measured).cpu)
        .map((process) => `${process} ${median(own.map((round) => round.cpu[process] as number))}`)
        .join(', '),
    ),
  );
}

const wanted = process.argv.slice(2);
if (wanted.join() === 'start') await measureStart();
else if (wanted.join() === 'json') await measureJson();
else if (wanted.join() === 'neighbours') await measureNeighbours();
else if (wanted.length > 0 && wanted.every((each): each is Scenario => Object.hasOwn(scenarios, each)))
  await compare(wanted);
else process.stdout.write(HELP);
