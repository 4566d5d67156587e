import { newId } from 'platform/core/ids.ts';
import { makeLog } from 'platform/core/log.ts';
import { serverToken } from 'platform/service/testing.ts';
import type { Op } from 'platform/store/store.ts';
import type { Deps } from '../src/deps.ts';
import { makeHeartbeats } from '../src/executions/heartbeats.ts';
import type { RunResult } from '../src/runtimes/runtime.ts';
import { NO_RUNNERS, testRuntimes } from './runtimes/test-runtimes.ts';
import type { ExecutionRecord } from '../src/executions/store.ts';
import { runAgent } from '../src/executions/run-agent.ts';
import { executionBytes, payloadBytes } from '../src/executions/rules.ts';
import { definitionOf, until } from './fixture.ts';
import { simulateProcesses, type Simulation } from './simulated-processes.ts';

const RUNS = 20;
const RESULT: RunResult = { outcome: 'succeeded', outputText: '"done"', usage: { steps: 1, cpuMs: 1 }, messages: [] };

/** The operations of a batch, with how often each occurs. */
const summary = (batch: readonly Op[]): Record<string, number> => {
  const counts: Record<string, number> = {};
  for (const { kind, collection } of batch)
    counts[`${kind} ${collection.name}`] = (counts[`${kind} ${collection.name}`] ?? 0) + 1;
  return counts;
};

describe('what runs cost', () => {
  let simulation: Simulation;
  let calls: string[];
  let deps: Deps;
  beforeEach(async () => {
    simulation = await simulateProcesses({ granted: 1_000 });
    await simulation.publish(definitionOf('fixed', '"done"'));
    await simulation.run(simulation.healthy, 'fixed');
    calls = [];
    const counted =
      (name: keyof Deps['credits'], call: (...args: never[]) => unknown) =>
      (...args: never[]) => {
        calls.push(name);
        return call(...args);
      };
    // Args are checked at once, so that the runs of a turn stay together however slow the machine is.
    deps = simulation.process(undefined, (_organizationId, work) => Promise.try(work));
    deps.credits = Object.fromEntries(
      Object.entries(deps.credits).map(([name, call]) => [name, counted(name as keyof Deps['credits'], call)]),
    ) as unknown as Deps['credits'];
    simulation.batches.length = 0;
  });
  afterEach(() => simulation.close());

  /** Evaluations that begin when this many runs wait for them, and end in one turn. */
  function evaluatedTogether(count: number): void {
    const waiting: (() => void)[] = [];
    deps.runtimes = testRuntimes(
      {
        stop: deps.runtimes.stop,
        queued: 0,
        state: NO_RUNNERS.state,
        evaluate: ({ onStart }) =>
          new Promise((resolve) => {
            onStart();
            waiting.push(() => resolve(RESULT));
            if (waiting.length === count) for (const end of waiting) end();
          }),
      },
      { schedule: deps.schedule },
    );
  }

  it('one run alone: a batch before and one after its evaluation, two calls, three events', async () => {
    await simulation.run(deps, 'fixed');
    expect(simulation.batches.map(summary)).toEqual([
      { 'insert executions': 1, 'insert execution_payloads': 1, 'update usage': 1 },
      { 'update executions': 1, 'update execution_payloads': 1, 'insert outbox': 3, 'update usage': 1 },
    ]);
    expect(calls).toEqual(['reserve', 'settle']);
  });

  it('runs of one turn: the same two batches for all, which write the counter once', async () => {
    evaluatedTogether(RUNS);
    await Promise.all(Array.from({ length: RUNS }, () => simulation.run(deps, 'fixed')));
    expect(simulation.batches.map(summary)).toEqual([
      { 'insert executions': RUNS, 'insert execution_payloads': RUNS, 'update usage': 1 },
      { 'update executions': RUNS, 'update execution_payloads': RUNS, 'insert outbox': 3 * RUNS, 'update usage': 1 },
    ]);
    expect(calls).toEqual([...Array<string>(RUNS).fill('reserve'), ...Array<string>(RUNS).fill('settle')]);
    const executions = await simulation.records();
    const counted = executions.map(executionBytes).reduce((sum, bytes) => sum + bytes, 0);
    const payload = payloadBytes({ args: '{}', output: '"done"', messages: '[]' });
    expect(await deps.usage.storedBytes(simulation.organizationId)).toBe(counted + executions.length * payload);
  });

  it('the mark that they are settled: one batch for all, after their answers', async () => {
    await Promise.all(Array.from({ length: RUNS }, () => simulation.run(deps, 'fixed')));
    simulation.batches.length = 0;
    expect(await simulation.markSettled(deps)).toBe(RUNS);
    expect(simulation.batches.map(summary)).toEqual([{ 'update executions': RUNS }]);
    expect(await simulation.markSettled(deps)).toBe(0);
  });

  it('a run that is refused does not hold up those of its turn: one key, one of them runs', async () => {
    evaluatedTogether(2);
    const keyed = Array.from({ length: 5 }, () => simulation.run(deps, 'fixed', 'key'));
    const outcomes = await Promise.allSettled([...keyed, simulation.run(deps, 'fixed')]);
    const reasons = outcomes.map((outcome) => (outcome.status === 'rejected' ? outcome.reason.reason : 'ran'));
    expect(reasons.sort()).toEqual([...Array<string>(4).fill('RUN_IN_PROGRESS'), 'ran', 'ran']);
    expect(calls).toEqual(['reserve', 'reserve', 'settle', 'settle']);
  });

  it('near the tier limit those of one turn begin that fit', async () => {
    evaluatedTogether(3);
    const used = await deps.usage.storedBytes(simulation.organizationId);
    const each = executionBytes({ error: null }) + payloadBytes({ args: '{}', output: null, messages: '[]' });
    const principal = serverToken(simulation.organizationId, { limits: { execution_bytes: used + 3.5 * each } });
    const context = () => ({ ...simulation.context(), principal });
    const run = () => runAgent(deps, { agentName: 'fixed', args: '{}', idempotencyKey: undefined }, context());
    const outcomes = await Promise.allSettled(Array.from({ length: 8 }, run));
    const reasons = outcomes.map((outcome) => (outcome.status === 'rejected' ? outcome.reason.reason : 'ran'));
    expect(reasons.sort()).toEqual([...Array<string>(5).fill('TIER_LIMIT'), 'ran', 'ran', 'ran']);
  });
});

describe('the heartbeats of all runs of a process', () => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const actor = { kind: 'server_token', id: 'token', name: 'ci', via: '' };
  const execution = (n: number) => ({ _id: `run-${n}`, organizationId: 'o', actor }) as ExecutionRecord;
  const auth = { findStoppedActors: async () => ({ stopped: [] }) };
  const call = { principal: serverToken(newId()), requestId: newId() };

  it('have one timer, and those that are due are written in one turn', async () => {
    const heartbeats = makeHeartbeats(60);
    const turns: string[][] = [];
    let turn: string[] | undefined;
    const note = async ({ _id }: ExecutionRecord) => {
      if (!turn) {
        turns.push((turn = []));
        setImmediate(() => (turn = undefined));
      }
      turn.push(_id);
      return true;
    };
    const extended: string[] = [];
    const deps = {
      auth,
      credits: { extend: async ({ id }: { id: string }) => ({ state: 'OPEN' as const, id: extended.push(id) }) },
      executions: { extendLease: note, toBeCancelled: async () => [] },
      config: { RESERVATION_TTL_MS: 1_000 },
      log: makeLog('agents', 'silent'),
    };
    const before = timers();
    const started = Array.from({ length: RUNS }, (_, n) => heartbeats.start(deps, execution(n), () => null, call));
    expect(timers()).toBe(before + 1);
    await until(() => turns.length >= 3);
    for (const { stop } of started) stop();
    const all = started.map((_, n) => `run-${n}`);
    expect(turns.slice(0, 3)).toEqual([all, all, all]);
    expect(extended.slice(0, RUNS)).toEqual(all);
    await until(() => timers() <= before);
  });

  it('end a run that another process has taken over', async () => {
    const heartbeats = makeHeartbeats(60);
    const deps = {
      auth,
      credits: { extend: () => Promise.reject(new Error('credits is down')) },
      executions: { extendLease: async ({ _id }: ExecutionRecord) => _id !== 'run-1', toBeCancelled: async () => [] },
      config: { RESERVATION_TTL_MS: 1_000 },
      log: makeLog('agents', 'silent'),
    };
    const [kept, lost] = [0, 1].map((n) => heartbeats.start(deps, execution(n), () => null, call));
    await until(() => lost!.signal.aborted);
    expect(kept!.signal.aborted).toBe(false);
    for (const { stop } of [kept!, lost!]) stop();
  });
});
