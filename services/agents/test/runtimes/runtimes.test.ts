import type { ServerResponse } from 'node:http';
import { fairScheduler } from 'platform/core/fair-scheduler.ts';
import type { RunLimits } from '../../src/runtimes/rules.ts';
import type { RunRequest, RunResult } from '../../src/runtimes/runtime.ts';
import { chatOf, say } from './llm/model-server.ts';
import { answerWith, startEndpoint, type Endpoint } from './network/endpoint.ts';
import { computing, LIMITS, testPool, type TestPool } from './runners/pool-fixture.ts';
import { requestFor } from './request-for.ts';
import { NO_RUNNERS, SECRET, testRuntimes } from './test-runtimes.ts';

/** An agent for each case of the suite, in each runtime that evaluates a source. */
const SOURCES = {
  expression: {
    language: 'jsonata',
    doubles: '{ "twice": a * 2 }',
    fails: '$error("not today")',
    faulty: '$number(secret)',
    wrong: '{ "a": ',
    yieldsNothing: '()',
    endless: '($f := function($n) { $f($n + 1) }; $f(0))',
    long: '$pad("", 20000, "x")',
    deep: '($f := function($n) { $n = 0 ? 1 : { "a": $f($n - 1) } }; $f(70))',
    traced: 'fail ? $error("no") : 1',
    greedy: '[1..50000].{ "a": [1..500] }',
  },
  script: {
    language: 'javascript',
    doubles: 'function run({ a }) { return { twice: a * 2 }; }',
    fails: 'async function run() { throw new Error("not today"); }',
    faulty: 'function run({ secret }) { return JSON.parse(secret); }',
    wrong: 'function run() { return (; }',
    yieldsNothing: 'function run() {}',
    endless: 'function run() { for (;;); }',
    long: 'function run() { return "x".repeat(20000); }',
    deep: 'function run() { let a = 1; for (let i = 0; i < 70; i++) a = [a, 2]; return a; }',
    traced:
      'function run({ fail }) { console.log("seen", { a: 1 }, 2); console.error("then"); if (fail) throw "no"; return 1; }',
    greedy: 'function run() { const all = []; for (;;) all.push({ text: String(all.length) }); }',
  },
} as const;
const SOURCE_TYPES = Object.keys(SOURCES) as (keyof typeof SOURCES)[];

/** What the endpoint of the http agents answers on each path. */
const ANSWERS: Record<string, (response: ServerResponse, args: { a: number; fail?: boolean }) => void> = {
  doubles: (response, { a }) => answerWith(response, { output: { twice: a * 2 } }),
  fails: (response) => answerWith(response, { error: 'not today' }),
  yieldsNothing: (response) => answerWith(response, {}),
  endless: () => undefined,
  traced: (response, { fail }) =>
    answerWith(response, { ...(fail ? { error: 'no' } : { output: 1 }), messages: ['seen {"a":1} 2', 'then'] }),
  long: (response) => answerWith(response, { output: 'x'.repeat(20_000) }),
  deep: (response) => void response.end(`{"output":${'['.repeat(70)}1${']'.repeat(70)}}`),
};

/** What the model of the llm agents says for each agent; JSON, because they have an output schema. */
const SAYINGS: Record<string, (response: ServerResponse, args: { a: number; fail?: boolean }) => void> = {
  doubles: (response, { a }) => say(response, JSON.stringify({ twice: a * 2 })),
  fails: (response) => answerWith(response, { error: { message: 'not today' } }, 400),
  yieldsNothing: (response) => say(response, ''),
  endless: () => undefined,
  traced: (response, { fail }) => say(response, fail ? 'no' : '1'),
  long: (response) => say(response, JSON.stringify('x'.repeat(20_000))),
  deep: (response) => say(response, `${'['.repeat(70)}1${']'.repeat(70)}`),
};

/** What runs of the agents show to the caller, where a runtime has its own words. */
const WORDS = {
  expression: { fails: 'not today', yieldsNothing: 'no output', long: 'larger than 10000 bytes' },
  script: { fails: 'not today', yieldsNothing: 'no output', long: 'larger than 10000 bytes' },
  http: { fails: 'not today', yieldsNothing: 'must be {"output": …}', long: 'too large' },
  llm: {
    fails: "The model's endpoint answered with status 400",
    yieldsNothing: 'not JSON',
    long: 'larger than 10000 bytes',
  },
} as const;
const TYPES = Object.keys(WORDS) as (keyof typeof WORDS)[];

/** What the agent `traced` leaves as messages: when it succeeds, and when it fails. */
const TRACES: Record<keyof typeof WORDS, [string[], string[]]> = {
  expression: [[], []],
  script: [
    ['seen {"a":1} 2', 'then'],
    ['seen {"a":1} 2', 'then'],
  ],
  http: [
    ['seen {"a":1} 2', 'then'],
    ['seen {"a":1} 2', 'then'],
  ],
  llm: [['1'], ['no', 'no']],
};

let pool: TestPool;
let endpoint: Endpoint;
let runtimes: ReturnType<typeof testRuntimes>;
beforeAll(async () => {
  pool = testPool();
  runtimes = testRuntimes(pool, { schedule: fairScheduler(), secretValues: () => Promise.resolve([SECRET]) });
  endpoint = await startEndpoint(({ path, body }, response) => {
    const [agent, ...rest] = path.slice(1).split('/');
    if (rest.length === 0) return ANSWERS[agent!]!(response, JSON.parse(body).args);
    SAYINGS[agent!]!(response, JSON.parse(chatOf({ body }).messages[0]!.content));
  });
});
afterAll(async () => {
  await runtimes.stop();
  await endpoint.close();
});

type Case = keyof (typeof SOURCES)['script'];
type Given = Partial<Omit<RunRequest, 'limits'>> & { args?: unknown; limits?: Partial<RunLimits> };

function definitionOf(type: string, agent: Case): { type: string } {
  const url = `${endpoint.url}/${agent}`;
  if (type === 'http') return { type, ...{ url, secretRef: 'signing' } };
  if (type === 'llm') return { type, ...{ url, model: 'tested', prompt: '{{args}}' } };
  const { language, [agent]: source } = SOURCES[type as 'script'];
  return { type, ...{ language, source } };
}
const runOf =
  (type: string) =>
  (agent: Case, { args = {}, limits, ...given }: Given = {}): Promise<RunResult> =>
    runtimes.byType[type]!.run({
      ...requestFor(definitionOf(type, agent), args),
      limits: { ...LIMITS, outputBytes: 10_000, ...limits },
      outputSchema: {},
      ...given,
    });

describe.each(TYPES)('the runtime %s', (type) => {
  const run = runOf(type);
  const usage = Object.fromEntries(
    testRuntimes(NO_RUNNERS).byType[type]!.units.map((unit) => [unit, expect.any(Number)]),
  );
  const check = (more: object) => runtimes.byType[type]!.check('one', { ...definitionOf(type, 'doubles'), ...more });

  it('accepts an agent that it can run, and names what is wrong with another one', async () => {
    expect(await check({})).toEqual([]);
    expect(await check({ sauce: 1 })).toEqual([{ path: '/sauce', message: expect.any(String) }]);
    expect(await runtimes.byType[type]!.check('one', { type })).toHaveLength(type === 'llm' ? 3 : 2);
  });

  it('gives the output of a success, and what it has used', async () => {
    const result = await run('doubles', { args: { a: 21 } });
    expect(result).toMatchObject({ outcome: 'succeeded', outputText: '{"twice":42}', messages: [], usage });
    const used = Object.keys('usage' in result ? result.usage : {});
    expect(used).toEqual([...runtimes.byType[type]!.units]);
  });

  it('shows what the author said about a failure, or which it was', async () => {
    expect(await run('fails')).toEqual({ outcome: 'failed', message: WORDS[type].fails, messages: [], usage });
  });

  it.each([
    ['yieldsNothing', WORDS[type].yieldsNothing],
    ['long', WORDS[type].long],
  ] as const)('fails an agent that %s, by its output', async (agent, message) => {
    expect(await run(agent)).toEqual({
      outcome: 'failed',
      message: expect.stringContaining(message),
      messages: [],
      usage,
    });
  });

  it('keeps what the agent writes as messages, of a success and of a failure, if its definition asks for them', async () => {
    const [written, writtenThenFailed] = TRACES[type].map((texts) =>
      texts.map((text) => ({ role: 'agent', parts: [{ type: 'text', text }] })),
    );
    expect(await run('traced', { trace: true })).toMatchObject({ outcome: 'succeeded', messages: written });
    const failed = await run('traced', { trace: true, args: { fail: true } });
    expect(failed).toMatchObject({ outcome: 'failed', messages: writtenThenFailed });
    expect(await run('traced')).toMatchObject({ outcome: 'succeeded', messages: [] });
  });

  it('ends a run at its limit of time, with what it has used', async () => {
    const result = await run('endless', { limits: { wallMs: 300 } });
    expect(result).toEqual({ outcome: 'timed_out', usage });
    const { tokensOut, ...used } = 'usage' in result ? result.usage : {};
    expect(tokensOut ?? 0).toBe(0);
    for (const amount of Object.values(used)) expect(amount).toBeGreaterThan(0);
  });

  it('ends a run that is cancelled', async () => {
    const caller = new AbortController();
    const running = run('endless', { signal: caller.signal, onStart: () => setImmediate(() => caller.abort()) });
    expect(await running).toEqual({ outcome: 'cancelled', usage });
  });

  it('ends a run that was cancelled before it began', async () => {
    expect(await run('endless', { signal: AbortSignal.abort() })).toMatchObject({ outcome: 'cancelled' });
  });
});

describe.each(SOURCE_TYPES)('the runtime %s, whose agents are a source', (type) => {
  const run = runOf(type);
  const usage = { steps: expect.any(Number), cpuMs: expect.any(Number) };

  it('names what is wrong with a source', async () => {
    const { language, doubles, wrong } = SOURCES[type];
    const check = (source: string) => runtimes.byType[type]!.check('one', { type, language, source });
    expect(await check(doubles)).toEqual([]);
    expect(await check(wrong)).toEqual([{ path: '/source', message: expect.stringMatching(/./) }]);
    expect(await check('')).toEqual([{ path: '/source', message: expect.stringMatching(/1/) }]);
  });

  it('measures at least one step and one millisecond, and the same steps each time', async () => {
    const [one, other] = [await run('doubles', { args: { a: 1 } }), await run('doubles', { args: { a: 1 } })];
    for (const result of [one, other]) if ('usage' in result) expect(result.usage.cpuMs).toBeGreaterThan(0);
    expect(stepsOf(one)).toBeGreaterThan(0);
    expect(stepsOf(one)).toBe(stepsOf(other));
  });

  it('shows no value of the args in a failure of the language', async () => {
    const result = await run('faulty', { args: { secret: 'hunter2' } });
    expect(result).toMatchObject({ outcome: 'failed', message: expect.stringMatching(/(line|character) \d+/) });
    expect(JSON.stringify(result)).not.toContain('hunter2');
  });

  it('ends a run at its limit of steps as a failure', async () => {
    expect(await run('endless', { limits: { maxSteps: 20_000 } })).toEqual({
      outcome: 'failed',
      message: expect.stringContaining('more than 20000 steps'),
      messages: [],
      usage: { ...usage, steps: 20_000 },
    });
  });

  it('ends a run at its limit of memory as a failure, and the next one succeeds', async () => {
    expect(await run('greedy', { limits: { memoryMb: 16 } })).toEqual({
      outcome: 'failed',
      message: expect.stringMatching(/more than \d+ MB of memory/),
      messages: [],
      usage,
    });
    expect(await run('doubles', { args: { a: 1 } })).toMatchObject({ outcome: 'succeeded' });
  });

  it('interrupts a run whose process dies, free of charge', async () => {
    await run('doubles', { args: { a: 1 } });
    const running = run('endless');
    process.kill(await computing(), 'SIGKILL');
    expect(await running).toEqual({ outcome: 'interrupted' });
  });
});

const stepsOf = (result: RunResult): number => ('usage' in result ? (result.usage.steps ?? 0) : 0);
