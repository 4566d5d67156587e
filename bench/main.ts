import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { temporaryFolder } from 'platform/testing.ts';
import { expressionAgent, startStack, untilPrinted, type Stack, type Tenant } from '../test/stack.ts';
import { realEngines } from './engines.ts';
import { measure, type Measured, type Target } from './load.ts';
import { measureStart } from './start.ts';

const OBJECTS = 10_000;
const ROUNDS = 3;
const ROUND_S = 5;
const PARTS = ['gateway', 'auth', 'agents', 'memory', 'credits'] as const;
const HELP = `npm run bench -- <what>
  get, list, create, run   requests per second and CPU microseconds per request of each process, 64 connections, on
                           ${OBJECTS.toLocaleString('en')} objects, next to the bare floor (fastify on the same store) in the same run; with
                           MONGODB_URL, REDIS_URL and KAFKA_BROKERS (npm run engines -- up) also on those servers
  start                    seconds from start to the first 200, and memory (PSS) of all processes
`;

const scenarios = {
  get: { method: 'GET', path: (objectId: string) => `/api/memory/objects/${objectId}`, floor: '/get' },
  list: { method: 'GET', path: () => '/api/memory/objects?type=item', floor: '/list' },
  create: { method: 'POST', path: () => '/api/memory/objects', floor: '/create', body: (key: string) => ({ type: 'item', key, content: contentOf(key) }) },
  run: { method: 'POST', path: () => '/api/agent/run', floor: '/run', body: (key: string) => ({ agentName: 'echo', args: { key } }) },
} as const;
type Scenario = keyof typeof scenarios;
const contentOf = (key: string): object => ({ name: `name of ${key}`, tags: ['a', 'b', 'c'], score: 4.5, nested: { active: true, note: null } });

async function compare(scenario: Scenario): Promise<void> {
  const { method, path, floor } = scenarios[scenario];
  const body = 'body' in scenarios[scenario] ? (scenarios[scenario] as { body(key: string): object }).body : undefined;
  const headers = { 'content-type': 'application/json' };
  const folder = temporaryFolder();
  const bare = fork(join(import.meta.dirname, 'floor.ts'), [folder.path, String(OBJECTS)], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
  let printed = '';
  bare.stdout?.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  const stacks: Stack[] = [];

  async function product(name: string, env: Record<string, string>, servers: Record<string, number>): Promise<Target> {
    const stack = await startStack({ env: { RUNS_AT_ONCE: '1000', RUN_QUEUE_LIMIT: '1000', ...env }, replicas: 1 });
    stacks.push(stack);
    const tenant = await stack.tenant({ credits: 1_000_000, agents: [expressionAgent('echo', '{ "echo": $ }')] });
    const objectId = await fill(tenant);
    return { name, url: stack.baseUrl + path(objectId), method, headers: { ...headers, authorization: `Bearer ${tenant.token}` }, body, pids: { ...pidsOf(stack), ...servers } };
  }

  try {
    const engines = await realEngines();
    const targets = [await product('embedded', {}, {}), ...(engines ? [await product(engines.name, { TEST_ENGINES: '1' }, engines.pids)] : [])];
    await untilPrinted(bare, () => printed, 'floor at');
    const floorUrl = /floor at (\S+)/.exec(printed)?.[1] as string;
    targets.unshift({ name: 'floor', url: floorUrl + floor, method, headers, body: body && ((key) => ({ key })), pids: { floor: bare.pid as number } });
    for (const target of targets) await measure(target, 2);
    const rounds: Measured[] = [];
    for (let round = 0; round < ROUNDS; round++) for (const target of targets) rounds.push(await measure(target, ROUND_S));
    report(scenario, targets.map(({ name }) => name), rounds);
  } finally {
    const ended = once(bare, 'exit');
    bare.disconnect();
    await ended;
    folder.remove();
    for (const stack of stacks) await stack.stop();
  }
}

const pidsOf = (stack: Stack): Record<string, number> => Object.fromEntries(PARTS.map((part) => [part, stack.pidOf(part)]));

/** @returns id of one object */
async function fill(tenant: Tenant): Promise<string> {
  const { status, text } = await tenant.request('POST', '/api/memory/types', { type: 'item', jsonSchema: { type: 'object', required: ['name'], properties: { name: { type: 'string' } } } });
  if (status !== 201) throw new Error(text);
  let next = 0;
  let id = '';
  await Promise.all(Array.from({ length: 64 }, async () => {
    while (next < OBJECTS) {
      const key = `key-${next++}`;
      const reply = await tenant.request('POST', '/api/memory/objects', { type: 'item', key, content: contentOf(key) });
      if (reply.status !== 201) throw new Error(reply.text);
      id = reply.body.id;
    }
  }));
  return id;
}

function report(scenario: Scenario, names: readonly string[], rounds: readonly Measured[]): void {
  const median = (values: number[]): number => values.sort((a, b) => a - b)[Math.floor(values.length / 2)] as number;
  const row = (title: string, cell: (own: Measured[]) => number | string): string => `| ${[title, ...names.map((name) => cell(rounds.filter((round) => round.name === name)))].join(' | ')} |\n`;
  const number = (title: string, of: (round: Measured) => number): string => row(title, (own) => median(own.map(of)));
  process.stdout.write(`\n${scenario}: 64 connections, ${OBJECTS} objects, median of ${ROUNDS} interleaved rounds of ${ROUND_S} s\n\n| | ${names.join(' | ')} |\n|---|${names.map(() => '--:|').join('')}\n`);
  process.stdout.write(number('req/s', (r) => r.requestsPerSecond) + number('p50 ms', (r) => r.p50Ms) + number('p99 ms', (r) => r.p99Ms) + number('failed', (r) => r.failed));
  process.stdout.write(row('CPU µs/req', (own) => Object.keys((own[0] as Measured).cpu).map((part) => `${part} ${median(own.map((round) => round.cpu[part] as number))}`).join(', ')));
}

const what = process.argv[2] ?? '--help';
if (what === 'start') await measureStart();
else if (Object.hasOwn(scenarios, what)) await compare(what as Scenario);
else process.stdout.write(HELP);
