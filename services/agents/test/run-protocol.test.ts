import { join } from 'node:path';
import { ServiceError } from 'platform/core/errors.ts';
import { definitionOf, until } from './fixture.ts';
import { say } from './runtimes/llm/model-server.ts';
import { answerWith, startEndpoint, type Endpoint } from './runtimes/network/endpoint.ts';
import { simulateProcesses, startSimulatedRunners, STEPS, type Simulation } from './simulated-processes.ts';

const PRICE = 3_000_000;
const LEASE_MS = 20_000;
const TTL_MS = 60_000;

describe('the run protocol', () => {
  let simulation: Simulation;
  let endpoint: Endpoint;
  const pool = startSimulatedRunners(1);
  beforeAll(async () => {
    endpoint = await startEndpoint(({ path }, response) =>
      path === '/http' ? answerWith(response, { output: 'done' }) : say(response, 'done'),
    );
  });
  afterAll(async () => {
    await pool.stop();
    await endpoint.close();
  });
  /** An agent in each runtime, with the output "done". */
  const runtimeOf = {
    expression: () => ({ type: 'expression', language: 'jsonata', source: '"done"' }),
    script: () => ({ type: 'script', language: 'javascript', source: 'function run() { return "done"; }' }),
    http: () => ({ type: 'http', url: `${endpoint.url}/http`, secretRef: 'signing' }),
    llm: () => ({ type: 'llm', url: `${endpoint.url}/llm`, model: 'tested', prompt: 'Are you done?' }),
  };
  const TYPES = Object.keys(runtimeOf) as (keyof typeof runtimeOf)[];
  beforeEach(async () => {
    simulation = await simulateProcesses({ leaseMs: LEASE_MS, ttlMs: TTL_MS, pool });
    await simulation.publish(definitionOf('fixed', '"done"', { pricing: { base: 3 } }));
  });
  afterEach(() => simulation.close());

  const points = STEPS.flatMap((step) =>
    (['before', 'after'] as const).flatMap((side) =>
      (['open', 'expired'] as const).flatMap((reservation) =>
        TYPES.map((type) => [side, step, type, reservation] as const),
      ),
    ),
  );

  it.each(points)(
    'a process frozen %s %s of runtime %s and reaped, reservation %s: charged once with a retry, no change afterwards',
    async (side, step, type, reservation) => {
      await simulation.publish(definitionOf('fixed', '', { runtime: runtimeOf[type](), pricing: { base: 3 } }));
      const { probe, frozen, thaw } = simulation.freezeAt(step, side);
      const slow = simulation.process(probe);
      const first = simulation.run(slow, 'fixed', 'key').catch((error: unknown) => error);
      await frozen;

      if (reservation === 'expired') {
        simulation.advance(TTL_MS + 1);
        simulation.sweep();
      } else simulation.advance(LEASE_MS + 1);
      await simulation.reap();
      simulation.advance(TTL_MS + 1);
      simulation.sweep();
      expect(simulation.account).toMatchObject({ reserved: 0, open: 0 });

      expect(await simulation.run(simulation.healthy, 'fixed', 'key')).toMatchObject({
        success: true,
        output: '"done"',
      });
      expect(simulation.account).toMatchObject({ spent: PRICE, reserved: 0, open: 0 });
      await simulation.markSettled();
      const records = await simulation.records();
      expect(records.filter(({ status }) => status === 'succeeded')).toHaveLength(1);
      expect(records.every(({ leaseUntil }) => leaseUntil === null)).toBe(true);
      expect(records.reduce((sum, { chargeMicros }) => sum + (chargeMicros ?? NaN), 0)).toBe(PRICE);

      thaw();
      await first;
      await simulation.markSettled(slow);
      simulation.advance(TTL_MS + 1);
      simulation.sweep();
      await simulation.reap();
      expect(await simulation.records()).toEqual(records);
      expect(simulation.account).toMatchObject({ spent: PRICE, reserved: 0, open: 0 });
    },
  );

  it('a run that the reaper took over answers as interrupted and does not settle its result', async () => {
    const { probe, frozen, thaw } = simulation.freezeAt('evaluate', 'after');
    const late = simulation.run(simulation.process(probe), 'fixed').catch((error: unknown) => error);
    await frozen;
    simulation.advance(LEASE_MS + 1);
    await simulation.reap();
    thaw();
    expect(await late).toMatchObject({ reason: 'INTERNAL', facts: { success: false } });
    expect(simulation.account.spent).toBe(0);
  });

  it('two reapers at the same time complete a run once', async () => {
    const { probe, frozen } = simulation.freezeAt('settle', 'before');
    void simulation.run(simulation.process(probe), 'fixed');
    await frozen;
    simulation.advance(LEASE_MS + 1);
    const counts = await Promise.all([simulation.reap(), simulation.reap()]);
    expect(counts.sort()).toEqual([0, 1]);
    expect(simulation.account.spent).toBe(PRICE);
  });

  it('a run whose settlement fails is answered all the same, and settled by the reaper', async () => {
    let failures = 2;
    const flaky = simulation.process((step, side) => {
      if (step === 'settle' && side === 'before' && failures-- > 0) throw new ServiceError('UNAVAILABLE');
    });
    expect(await simulation.run(flaky, 'fixed')).toMatchObject({ success: true });
    expect(simulation.account).toMatchObject({ spent: 0, reserved: PRICE });
    expect(await simulation.markSettled(flaky)).toBe(0);
    expect(await simulation.reap()).toBe(0);
    simulation.advance(LEASE_MS + 1);
    expect(await simulation.reap(flaky)).toBe(0);
    simulation.advance(LEASE_MS + 1);
    expect(await simulation.reap(flaky)).toBe(1);
    expect(simulation.account).toMatchObject({ spent: PRICE, reserved: 0 });
  });

  it('a process that dies before it marks what it settled: the reaper settles again, which charges nothing', async () => {
    const dying = simulation.process();
    const runs = await Promise.all([1, 2, 3].map(() => simulation.run(dying, 'fixed')));
    expect(runs).toMatchObject([{ success: true }, { success: true }, { success: true }]);
    expect(simulation.account).toMatchObject({ spent: 3 * PRICE, reserved: 0, open: 0 });
    expect((await simulation.records()).filter(({ leaseUntil }) => leaseUntil === null)).toEqual([]);
    simulation.advance(LEASE_MS + 1);
    expect(await simulation.reap()).toBe(3);
    expect(simulation.account).toMatchObject({ spent: 3 * PRICE, reserved: 0, open: 0 });
    expect((await simulation.records()).filter(({ leaseUntil }) => leaseUntil !== null)).toEqual([]);
    expect(await simulation.reap()).toBe(0);
  });

  it.each(['INVALID_REQUEST', 'NOT_FOUND'] as const)(
    'a settlement that credits rejects as %s is abandoned by the reaper, not tried for ever',
    async (reason) => {
      let attempts = 0;
      const rejected = simulation.process((step, side) => {
        if (step !== 'settle' || side !== 'before') return;
        attempts += 1;
        throw new ServiceError(reason);
      });
      expect(await simulation.run(rejected, 'fixed')).toMatchObject({ success: true });
      simulation.advance(LEASE_MS + 1);
      expect(await simulation.reap(rejected)).toBe(1);
      expect(await simulation.records()).toMatchObject([{ status: 'succeeded', leaseUntil: null }]);
      simulation.advance(LEASE_MS + 1);
      expect(await simulation.reap(rejected)).toBe(0);
      expect(attempts).toBe(2);
    },
  );

  it('a reservation whose answer was lost is released: 503, no record, and the key is free', async () => {
    let losses = 1;
    const lossy = simulation.process((step, side) => {
      if (step === 'reserve' && side === 'after' && losses-- > 0) throw new ServiceError('OUTCOME_UNKNOWN');
    });
    await expect(simulation.run(lossy, 'fixed', 'key')).rejects.toMatchObject({ reason: 'UNAVAILABLE' });
    await until(() => simulation.account.reserved === 0);
    expect([await simulation.records(), await simulation.payloads(), await simulation.keys()]).toEqual([[], 0, 0]);
    expect(await simulation.run(lossy, 'fixed', 'key')).toMatchObject({ success: true });
  });

  it('a run that cannot be reserved or withdrawn has an unknown outcome and is interrupted for free', async () => {
    const unreachable = async () => {
      throw new ServiceError('UNAVAILABLE');
    };
    const { executions, ...rest } = simulation.process((step) => {
      if (step === 'reserve') throw new ServiceError('UNAVAILABLE');
    });
    const failure = await simulation
      .run({ ...rest, executions: { ...executions, withdraw: unreachable } }, 'fixed', 'key')
      .catch((error: unknown) => error);
    const [remaining] = await simulation.records();
    expect(failure).toMatchObject({
      reason: 'OUTCOME_UNKNOWN',
      facts: { success: false, agentExecutionId: remaining?._id },
    });
    simulation.advance(LEASE_MS + 1);
    await simulation.reap();
    expect(await simulation.records()).toMatchObject([{ status: 'interrupted', chargeMicros: 0 }]);
    expect(await simulation.run(simulation.healthy, 'fixed', 'key')).toMatchObject({ success: true });
  });

  it('a full queue leaves no record and no reservation, and the key is free', async () => {
    const full = simulation.process((step, side) => {
      if (step === 'evaluate' && side === 'before') throw new ServiceError('QUEUE_FULL');
    });
    await expect(simulation.run(full, 'fixed', 'key')).rejects.toMatchObject({ reason: 'QUEUE_FULL' });
    expect([await simulation.records(), await simulation.payloads(), await simulation.keys()]).toEqual([[], 0, 0]);
    await until(() => simulation.account.reserved === 0);
    expect(await simulation.run(simulation.healthy, 'fixed', 'key')).toMatchObject({ success: true });
  });

  it("a fault of the runner is the platform's fault: 500, recorded, free of charge", async () => {
    const broken = simulation.process((step, side) => {
      if (step === 'evaluate' && side === 'before') throw new Error('no child process');
    });
    await expect(simulation.run(broken, 'fixed')).rejects.toMatchObject({
      reason: 'INTERNAL',
      message: expect.not.stringContaining('child'),
      facts: { success: false },
    });
    await simulation.markSettled(broken);
    expect(await simulation.records()).toMatchObject([
      { status: 'failed', error: { reason: 'INTERNAL' }, chargeMicros: 0, leaseUntil: null },
    ]);
    const [{ _id } = { _id: '' }] = await simulation.records();
    expect(simulation.account).toMatchObject({ spent: 0, reserved: 0 });
    expect(simulation.stateOf(_id)).toBe('RELEASED');
  });

  it('a run whose end may not have been written is 504, and a repeat with the key gives its answer', async () => {
    const lossy = simulation.process((step, side) => {
      if (step === 'finish' && side === 'after') throw new Error('the store went away');
    });
    await expect(simulation.run(lossy, 'fixed', 'key')).rejects.toMatchObject({
      reason: 'OUTCOME_UNKNOWN',
      facts: { success: false, agentExecutionId: expect.any(String) },
    });
    expect(await simulation.run(simulation.healthy, 'fixed', 'key')).toMatchObject({
      success: true,
      idempotencyReplayed: 'true',
    });
    simulation.advance(LEASE_MS + 1);
    await simulation.reap();
    expect(simulation.account).toMatchObject({ spent: PRICE, reserved: 0 });
  });
});

describe('a runner that lies', () => {
  let simulation: Simulation;
  beforeEach(async () => {
    simulation = await simulateProcesses({ program: join(import.meta.dirname, 'runtimes/runners/lying-runner.ts') });
  });
  afterEach(() => simulation.close());

  it.each(['stepsNegative', 'stepsNaN', 'outputThatEndsTheReply', 'outputNoJson'])(
    'makes the run a fault of the platform, free of charge, and the key is free again: %s',
    async (lie) => {
      const metered = { pricing: { base: 1, max: 2, perUnit: { steps: 0.01, cpuMs: 0.01 } } };
      await simulation.publish(definitionOf('lied-about', lie, metered));
      await expect(simulation.run(simulation.healthy, 'lied-about', 'key')).rejects.toMatchObject({
        reason: 'INTERNAL',
        facts: { success: false },
      });
      await simulation.markSettled();
      expect(await simulation.records()).toMatchObject([
        { status: 'interrupted', usage: {}, chargeMicros: 0, leaseUntil: null },
      ]);
      expect(simulation.account).toMatchObject({ spent: 0, reserved: 0, open: 0 });
      expect(await simulation.keys()).toBe(0);
    },
  );
});

describe('the heartbeat', () => {
  it('keeps the reaper away from a run that lasts many times longer than its lease and its reservation', async () => {
    const simulation = await simulateProcesses({ leaseMs: 8_000, ttlMs: 10_000 });
    const silent = await startEndpoint(() => undefined);
    const runtime = { type: 'http', url: silent.url, secretRef: 'signing' };
    await simulation.publish(definitionOf('long', '', { runtime, limits: { wallMs: 30_000 } }));
    let over = false;
    const states = new Set<unknown>();
    const running = simulation
      .run(simulation.healthy, 'long')
      .catch((error: unknown) => error)
      .finally(() => {
        over = true;
      });
    await until(async () => {
      await simulation.reap();
      simulation.sweep();
      for (const { _id } of await simulation.records()) states.add(simulation.stateOf(_id));
      return over;
    });
    expect(states).not.toContain('EXPIRED');
    expect(await running).toMatchObject({ reason: 'RUN_TIMEOUT' });
    await simulation.markSettled();
    expect(await simulation.records()).toMatchObject([{ status: 'timed_out', leaseUntil: null }]);
    await simulation.close();
    await silent.close();
  });
});
