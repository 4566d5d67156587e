import { cancelAgentExecution } from '../src/executions/cancel-agent-execution.ts';
import { runAgent } from '../src/executions/run-agent.ts';
import type { Deps } from '../src/deps.ts';
import type { RunRequest, RunResult, Runtime } from '../src/runtimes/runtime.ts';
import { definitionOf, until } from './fixture.ts';
import { startEndpoint } from './runtimes/network/endpoint.ts';
import { simulateProcesses, type Simulation } from './simulated-processes.ts';

/** As many as an organization may have. */
const AT_ONCE = 20;
const PRICING = { base: 1, max: 5, perUnit: { steps: 0.001 } };
const failureOf = (call: Promise<unknown>): Promise<unknown> => call.then(String, (error: unknown) => error);
const never = (): Promise<never> => new Promise(() => undefined);

let simulation: Simulation;
beforeEach(async () => {
  simulation = await simulateProcesses({ leaseMs: 2_000, granted: 1_000 });
});
afterEach(() => simulation.close());

/** A process whose runtime for expressions runs so; it has until the limit of time. */
function processWith(run: (request: RunRequest) => Promise<RunResult>): Deps {
  const { healthy } = simulation;
  const { byType } = healthy.runtimes;
  const runtime: Runtime = { ...byType['expression']!, overdueMs: 0, run };
  return { ...healthy, runtimes: { ...healthy.runtimes, byType: { ...byType, expression: runtime } } };
}

const WAYS: Record<string, { wallMs: number; end: string; stop(deps: Deps, client: AbortController): unknown }> = {
  'its limit of time': { wallMs: 100, end: 'timed_out', stop: () => undefined },
  'a cancellation': {
    ...{ wallMs: 300_000, end: 'cancelled' },
    async stop(deps) {
      for (const { _id, status } of await simulation.records())
        if (status === 'queued' || status === 'running')
          await cancelAgentExecution(deps, { id: _id }, simulation.context());
    },
  },
  'the end of its client': { wallMs: 300_000, end: 'cancelled', stop: (_deps, client) => client.abort() },
};

describe('a run whose runtime never tells its end', () => {
  it.each(Object.keys(WAYS))('is ended by %s, and all runs of the organization are possible again', async (way) => {
    const { wallMs, end, stop } = WAYS[way]!;
    await simulation.publish(definitionOf('endless', '1', { limits: { wallMs }, pricing: PRICING }));
    const begun: RunRequest[] = [];
    const ends: ((result: RunResult) => void)[] = [];
    const deps = processWith((request) => {
      begun.push(request);
      request.onStart();
      return new Promise((resolve) => ends.push(resolve));
    });
    for (let round = 1; round <= 2; round++) {
      const client = new AbortController();
      const run = () =>
        failureOf(runAgent(deps, { agentName: 'endless', args: '{}' }, simulation.context(client.signal)));
      const running = Array.from({ length: AT_ONCE }, run);
      await until(() => begun.length === round * AT_ONCE);
      await stop(deps, client);
      const reason = end === 'timed_out' ? 'RUN_TIMEOUT' : 'RUN_CANCELLED';
      for (const failure of running)
        expect(await failure).toMatchObject({ reason, headers: { 'Credits-Charged': '0' } });
      expect(simulation.account).toMatchObject({ open: 0, reserved: 0, spent: 0 });
    }
    const records = await simulation.records();
    expect(records.map(({ status, chargeMicros }) => [status, chargeMicros])).toEqual(
      Array.from({ length: 2 * AT_ONCE }, () => [end, 0]),
    );
    // The runtime was told, and what it says now changes nothing.
    expect(begun.every(({ signal }) => signal.aborted)).toBe(true);
    const written = simulation.batches.length;
    for (const endLate of ends) endLate({ outcome: 'succeeded', outputText: '1', messages: [], usage: { steps: 9 } });
    await new Promise(setImmediate);
    expect(simulation.batches).toHaveLength(written);
    expect(await simulation.records()).toEqual(records);
  });

  it('is ended also before its runtime has started it', async () => {
    await simulation.publish(definitionOf('endless', '1', { pricing: PRICING }));
    const client = new AbortController();
    const deps = processWith(() => {
      client.abort();
      return never();
    });
    const request = { agentName: 'endless', args: '{}' };
    expect(await failureOf(runAgent(deps, request, simulation.context(client.signal)))).toMatchObject({
      reason: 'RUN_CANCELLED',
    });
    expect(await simulation.records()).toMatchObject([{ status: 'cancelled', startedAt: null }]);
  });
});

describe('a run whose output is never checked', () => {
  it.each(['its limit of time', 'the end of its client'])('is ended by %s, for what it has used', async (way) => {
    const { wallMs, end, stop } = WAYS[way]!;
    await simulation.publish(definitionOf('endless', '1', { limits: { wallMs }, pricing: PRICING }));
    const client = new AbortController();
    const deps = processWith(async (request) => {
      request.onStart();
      return { outcome: 'succeeded', outputText: '1', messages: [], usage: { steps: 2_000 } };
    });
    const loadVersion: Deps['loadVersion'] = async (...given) => ({
      ...(await deps.loadVersion(...given)),
      checkOutput() {
        void stop(deps, client);
        return never();
      },
    });
    const request = { agentName: 'endless', args: '{}' };
    await failureOf(runAgent({ ...deps, loadVersion }, request, simulation.context(client.signal)));
    expect(await simulation.records()).toMatchObject([
      { status: end, usage: { steps: 2_000 }, chargeMicros: 2_000_000 },
    ]);
    expect(simulation.account).toMatchObject({ open: 0, reserved: 0, spent: 2_000_000 });
  });
});

it('runs whose endpoint or model switches protocols fail at once, more than may be under way', async () => {
  const endpoint = await startEndpoint((_request, _response, socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n');
  });
  const free = { limits: { wallMs: 300_000 }, pricing: { base: 0 } };
  const http = { type: 'http', url: endpoint.url, secretRef: 'signing' };
  const llm = { type: 'llm', url: endpoint.url, model: 'tested', prompt: 'Hello' };
  for (const runtime of [http, llm]) await simulation.publish(definitionOf(runtime.type, '', { runtime, ...free }));
  for (let round = 0; round < 2; round++) {
    const running = Array.from({ length: AT_ONCE }, (_, n) =>
      failureOf(simulation.run(simulation.healthy, n % 2 === 0 ? 'http' : 'llm')),
    );
    for (const failure of running)
      expect(await failure).toMatchObject({
        reason: 'AGENT_FAILED',
        message: expect.stringContaining('answered with status 101'),
      });
    expect(simulation.account).toMatchObject({ open: 0, reserved: 0 });
  }
  await until(() => endpoint.connections() === 0);
  await endpoint.close();
});
