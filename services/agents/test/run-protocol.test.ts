import { ServiceError } from 'platform/core/errors.ts';
import { definitionOf, ENDLESS, until } from './agents-fixture.ts';
import { freezeAt, openWorld, STEPS, type World } from './processes.ts';

const PRICE = 3_000_000;
const LEASE_MS = 20_000;
const TTL_MS = 60_000;

describe('the run protocol', () => {
  let world: World;
  beforeEach(async () => {
    world = await openWorld({ leaseMs: LEASE_MS, ttlMs: TTL_MS });
    await world.publish(definitionOf('fixed', '"done"', { pricing: { base: 3 } }));
  });
  afterEach(() => world.close());

  const points = STEPS.flatMap((step) =>
    (['before', 'after'] as const).flatMap((side) =>
      (['while it is open', 'after it expired'] as const).map((when) => [side, step, when] as const),
    ),
  );

  it.each(points)(
    'a process that dies %s %s, reaped with its reservation %s: charged once with the retry, nothing left reserved, and its waking up changes nothing',
    async (side, step, when) => {
      const { probe, frozen, thaw } = freezeAt(step, side);
      const first = world.run(world.process(probe), 'fixed', 'key').catch((error: unknown) => error);
      await frozen;

      if (when === 'after it expired') {
        world.advance(TTL_MS + 1);
        world.sweep();
      } else world.advance(LEASE_MS + 1);
      await world.reap();
      world.advance(TTL_MS + 1);
      world.sweep();
      expect(world.account).toMatchObject({ reserved: 0, open: 0 });

      expect(await world.run(world.healthy, 'fixed', 'key')).toMatchObject({ success: true, output: '"done"' });
      expect(world.account).toMatchObject({ spent: PRICE, reserved: 0, open: 0 });
      const records = await world.records();
      expect(records.filter(({ status }) => status === 'succeeded')).toHaveLength(1);
      expect(records.every(({ leaseUntil }) => leaseUntil === null)).toBe(true);
      expect(records.reduce((sum, { chargeMicros }) => sum + (chargeMicros ?? NaN), 0)).toBe(PRICE);

      thaw();
      await first;
      world.advance(TTL_MS + 1);
      world.sweep();
      await world.reap();
      expect(await world.records()).toEqual(records);
      expect(world.account).toMatchObject({ spent: PRICE, reserved: 0, open: 0 });
    },
  );

  it('a run whose lease was taken answers as interrupted and may not settle its result', async () => {
    const { probe, frozen, thaw } = freezeAt('evaluate', 'after');
    const late = world.run(world.process(probe), 'fixed').catch((error: unknown) => error);
    await frozen;
    world.advance(LEASE_MS + 1);
    await world.reap();
    thaw();
    expect(await late).toMatchObject({ reason: 'INTERNAL', facts: { success: false } });
    expect(world.account.spent).toBe(0);
  });

  it('two reapers at once finish a run once', async () => {
    const { probe, frozen } = freezeAt('settle', 'before');
    void world.run(world.process(probe), 'fixed');
    await frozen;
    world.advance(LEASE_MS + 1);
    const counts = await Promise.all([world.reap(), world.reap()]);
    expect(counts.sort()).toEqual([0, 1]);
    expect(world.account.spent).toBe(PRICE);
  });

  it('a settlement that fails is answered all the same and made up for by the reaper', async () => {
    let failures = 1;
    const flaky = world.process((step, side) => {
      if (step === 'settle' && side === 'before' && failures-- > 0) throw new ServiceError('UNAVAILABLE');
    });
    expect(await world.run(flaky, 'fixed')).toMatchObject({ success: true });
    expect(world.account).toMatchObject({ spent: 0, reserved: PRICE });
    expect(await world.reap()).toBe(0);
    world.advance(LEASE_MS + 1);
    expect(await world.reap()).toBe(1);
    expect(world.account).toMatchObject({ spent: PRICE, reserved: 0 });
  });

  it.each(['INVALID_REQUEST', 'NOT_FOUND'] as const)(
    'a settlement that credits refuses as %s is given up by the reaper, not tried for ever',
    async (reason) => {
      let attempts = 0;
      const refused = world.process((step, side) => {
        if (step !== 'settle' || side !== 'before') return;
        attempts += 1;
        throw new ServiceError(reason);
      });
      expect(await world.run(refused, 'fixed')).toMatchObject({ success: true });
      world.advance(LEASE_MS + 1);
      expect(await world.reap(refused)).toBe(1);
      expect(await world.records()).toMatchObject([{ status: 'succeeded', leaseUntil: null }]);
      world.advance(LEASE_MS + 1);
      expect(await world.reap(refused)).toBe(0);
      expect(attempts).toBe(2);
    },
  );

  it('a reservation whose answer was lost is given back: 503, no record, the key free', async () => {
    let losses = 1;
    const lossy = world.process((step, side) => {
      if (step === 'reserve' && side === 'after' && losses-- > 0) throw new ServiceError('OUTCOME_UNKNOWN');
    });
    await expect(world.run(lossy, 'fixed', 'key')).rejects.toMatchObject({ reason: 'UNAVAILABLE' });
    await until(() => world.account.reserved === 0);
    expect([await world.records(), await world.payloads(), await world.keys()]).toEqual([[], 0, 0]);
    expect(await world.run(lossy, 'fixed', 'key')).toMatchObject({ success: true });
  });

  it('a run that was refused but whose record cannot be taken back has an unknown outcome, and is interrupted free of charge', async () => {
    const away = async () => {
      throw new ServiceError('UNAVAILABLE');
    };
    const { executions, ...rest } = world.process((step) => {
      if (step === 'reserve') throw new ServiceError('UNAVAILABLE');
    });
    const refusal = await world
      .run({ ...rest, executions: { ...executions, withdraw: away } }, 'fixed', 'key')
      .catch((error: unknown) => error);
    const [stayed] = await world.records();
    expect(refusal).toMatchObject({
      reason: 'OUTCOME_UNKNOWN',
      facts: { success: false, agentExecutionId: stayed?._id },
    });
    world.advance(LEASE_MS + 1);
    await world.reap();
    expect(await world.records()).toMatchObject([{ status: 'interrupted', chargeMicros: 0 }]);
    expect(await world.run(world.healthy, 'fixed', 'key')).toMatchObject({ success: true });
  });

  it('a full queue leaves no record, no reservation and the key free', async () => {
    const full = world.process((step, side) => {
      if (step === 'evaluate' && side === 'before') throw new ServiceError('QUEUE_FULL');
    });
    await expect(world.run(full, 'fixed', 'key')).rejects.toMatchObject({ reason: 'QUEUE_FULL' });
    expect([await world.records(), await world.payloads(), await world.keys()]).toEqual([[], 0, 0]);
    await until(() => world.account.reserved === 0);
    expect(await world.run(world.healthy, 'fixed', 'key')).toMatchObject({ success: true });
  });

  it("a fault of the runner is the platform's: 500 internal, recorded, free of charge", async () => {
    const broken = world.process((step, side) => {
      if (step === 'evaluate' && side === 'before') throw new Error('no child process');
    });
    await expect(world.run(broken, 'fixed')).rejects.toMatchObject({
      reason: 'INTERNAL',
      message: expect.not.stringContaining('child'),
      facts: { success: false },
    });
    expect(await world.records()).toMatchObject([
      { status: 'failed', error: { reason: 'INTERNAL' }, chargeMicros: 0, leaseUntil: null },
    ]);
    const [{ _id } = { _id: '' }] = await world.records();
    expect(world.account).toMatchObject({ spent: 0, reserved: 0 });
    expect(world.stateOf(_id)).toBe('RELEASED');
  });

  it('an end whose outcome cannot be told is 504, and the repeat with the key tells', async () => {
    const lossy = world.process((step, side) => {
      if (step === 'finish' && side === 'after') throw new Error('the store went away');
    });
    await expect(world.run(lossy, 'fixed', 'key')).rejects.toMatchObject({
      reason: 'OUTCOME_UNKNOWN',
      facts: { success: false, agentExecutionId: expect.any(String) },
    });
    expect(await world.run(world.healthy, 'fixed', 'key')).toMatchObject({
      success: true,
      idempotencyReplayed: 'true',
    });
    world.advance(LEASE_MS + 1);
    await world.reap();
    expect(world.account).toMatchObject({ spent: PRICE, reserved: 0 });
  });
});

describe('the heartbeat', () => {
  it('keeps a run that outlasts its lease and its reservation many times from the reaper', async () => {
    const world = await openWorld({ leaseMs: 8_000, ttlMs: 10_000 });
    await world.publish(definitionOf('long', ENDLESS, { limits: { wallMs: 30_000, maxSteps: 1_000_000_000 } }));
    let over = false;
    const states = new Set<unknown>();
    const running = world
      .run(world.healthy, 'long')
      .catch((error: unknown) => error)
      .finally(() => {
        over = true;
      });
    await until(async () => {
      await world.reap();
      world.sweep();
      for (const { _id } of await world.records()) states.add(world.stateOf(_id));
      return over;
    });
    expect(states).not.toContain('EXPIRED');
    expect(await running).toMatchObject({ reason: 'RUN_TIMEOUT' });
    expect(await world.records()).toMatchObject([{ status: 'timed_out', leaseUntil: null }]);
    await world.close();
  });
});
