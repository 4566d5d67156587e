import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { temporaryFolder } from 'platform/service/testing.ts';
import { expressionAgent, startStack, untilPrinted, type Stack, type Tenant } from '../test/support/stack.ts';
import { realEngines } from './engines.ts';
import { measure, type Measured, type Target } from './load.ts';
import { measureStart } from './start.ts';

interface Size {
  objects: number;
  connections: number;
}
const SIZE: Size = { objects: 10_000, connections: 64 };
/** With servers: the stand-in for mongod is one Python process, that sorts all objects of a type for every page of a list. */
const SIZE_ON_SERVERS: Size = { objects: 1_000, connections: 8 };
const ROUNDS = 3;
const ROUND_S = 5;
const PARTS = ['gateway', 'auth', 'agents', 'memory', 'credits'] as const;
const HELP = `npm run bench -- <what>
  get, list, create, run   (one or more) requests per second and CPU microseconds per request of each process, next to the bare
                           floor (fastify on the same store) in the same run: ${SIZE.connections} connections, ${SIZE.objects.toLocaleString('en')} objects. With MONGODB_URL,
                           REDIS_URL and KAFKA_BROKERS (npm run engines -- up) also on those servers: ${SIZE_ON_SERVERS.connections} connections, ${SIZE_ON_SERVERS.objects.toLocaleString('en')} objects
  start                    seconds from start to the first 200, and memory (PSS) of all processes
`;

interface ScenarioOf {
  method: 'GET' | 'POST';
  path(objectId: string): string;
  /** Its path on the floor. */
  floor: string;
  body?(key: string): object;
}
/** What is measured: the floor, or the product on one set of engines. */
interface Place {
  name: string;
  urlOf(scenario: ScenarioOf): string;
  /** None: the floor, which takes any body. */
  authorization?: string;
  pids: Record<string, number>;
}
const scenarios = {
  get: { method: 'GET', path: (objectId: string) => `/api/memory/objects/${objectId}`, floor: '/get' },
  list: { method: 'GET', path: () => '/api/memory/objects?type=item', floor: '/list' },
  create: {
    method: 'POST',
    path: () => '/api/memory/objects',
    floor: '/create',
    body: (key: string) => ({ type: 'item', key, content: contentOf(key) }),
  },
  run: {
    method: 'POST',
    path: () => '/api/agent/run',
    floor: '/run',
    body: (key: string) => ({ agentName: 'echo', args: { key } }),
  },
} satisfies Record<string, ScenarioOf>;
type Scenario = keyof typeof scenarios;
const contentOf = (key: string): object => ({
  name: `name of ${key}`,
  tags: ['a', 'b', 'c'],
  score: 4.5,
  nested: { active: true, note: null },
});

/** Floor and products are filled once; each scenario has rounds of its own. */
async function compare(wanted: readonly Scenario[]): Promise<void> {
  const engines = await realEngines();
  const size = engines ? SIZE_ON_SERVERS : SIZE;
  const folder = temporaryFolder();
  const bare = fork(join(import.meta.dirname, 'floor.ts'), [folder.path, String(size.objects)], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  let printed = '';
  bare.stdout?.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  const stacks: Stack[] = [];

  async function product(name: string, env: Record<string, string>, servers: Record<string, number>): Promise<Place> {
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
    await untilPrinted(bare, () => printed, 'floor at');
    const floorUrl = /floor at (\S+)/.exec(printed)?.[1] as string;
    const places: Place[] = [
      { name: 'floor', urlOf: ({ floor }) => floorUrl + floor, pids: { floor: bare.pid as number } },
      await product('embedded', {}, {}),
      ...(engines ? [await product(engines.name, { TEST_ENGINES: '1' }, engines.pids)] : []),
    ];
    for (const scenario of wanted)
      report(
        scenario,
        size,
        places.map(({ name }) => name),
        await roundsOf(scenarios[scenario], size, places),
      );
  } finally {
    const ended = once(bare, 'exit');
    bare.disconnect();
    await ended;
    folder.remove();
    for (const stack of stacks) await stack.stop();
  }
}

async function roundsOf(scenario: ScenarioOf, { connections }: Size, places: readonly Place[]): Promise<Measured[]> {
  const { method, body } = scenario;
  const targets = places.map(({ name, urlOf, authorization, pids }): Target => {
    const own = authorization === undefined ? body && ((key: string) => ({ key })) : body;
    return {
      name,
      url: urlOf(scenario),
      method,
      headers: { 'content-type': 'application/json', ...(authorization && { authorization }) },
      body: own,
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
  Object.fromEntries(PARTS.map((part) => [part, stack.pidOf(part)]));

/** @returns id of one object */
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
    `\n${scenario}: ${connections} connections, ${objects} objects, median of ${ROUNDS} interleaved rounds of ${ROUND_S} s\n\n| | ${names.join(' | ')} |\n|---|${names.map(() => '--:|').join('')}\n`,
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
        .map((part) => `${part} ${median(own.map((round) => round.cpu[part] as number))}`)
        .join(', '),
    ),
  );
}

const wanted = process.argv.slice(2);
if (wanted.join() === 'start') await measureStart();
else if (wanted.length > 0 && wanted.every((each): each is Scenario => Object.hasOwn(scenarios, each)))
  await compare(wanted);
else process.stdout.write(HELP);
