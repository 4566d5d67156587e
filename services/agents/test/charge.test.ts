import fc from 'fast-check';
import { priceOf, type Definition } from '../src/definitions/rules.ts';
import { chargeOf, INTERRUPTED, type RunEnd } from '../src/executions/rules.ts';
import { UNITS, type Unit } from '../src/runtimes/rules.ts';
import { definitionOf, startAgents, type Agents } from './fixture.ts';
import { HANGING } from './runtimes/expression/hanging.ts';

const recordOf = <T>(valueOf: () => T) => Object.fromEntries(UNITS.map((unit) => [unit, valueOf()])) as Record<Unit, T>;
const FREE = recordOf(() => 0);

describe('the charge of a run', () => {
  const micros = fc.nat(1_000_000_000_000);
  const prices = fc
    .record({
      baseMicros: micros,
      moreMicros: micros,
      unitMicros: fc.record(recordOf(() => micros)),
    })
    .map(({ moreMicros, ...price }) => ({ ...price, maxMicros: price.baseMicros + moreMicros }));
  const ends = fc.record({
    error: fc.constantFrom<RunEnd['error']>(null, { reason: 'AGENT_FAILED', message: '' }, INTERRUPTED.error),
    usage: fc.record(
      recordOf(() => fc.oneof(fc.nat(20), fc.nat(1_000_000_000))),
      { requiredKeys: [] },
    ),
  });

  it('is exact for any prices and any use: whole micro-credits, never more than max', () => {
    fc.assert(
      fc.property(prices, ends, (price, end) => {
        const base = end.error ? 0n : BigInt(price.baseMicros);
        const whole = UNITS.reduce(
          (sum, unit) => sum + BigInt(end.usage[unit] ?? 0) * BigInt(price.unitMicros[unit]),
          base,
        );
        const most = BigInt(price.maxMicros);
        const expected = end.error?.reason === 'INTERNAL' ? 0n : whole < most ? whole : most;
        expect(BigInt(chargeOf(price, end))).toBe(expected);
      }),
      { numRuns: 1_000 },
    );
  });

  it('is free for a unit without a price, and one credit for a success without any', () => {
    const priceFor = (pricing?: Definition['pricing']) => priceOf({ pricing } as Definition);
    expect(priceFor()).toEqual({ baseMicros: 1_000_000, maxMicros: 1_000_000, unitMicros: FREE });
    expect(priceFor({ max: 2, perUnit: { cpuMs: 0.000_001 } })).toEqual({
      baseMicros: 1_000_000,
      maxMicros: 2_000_000,
      unitMicros: { ...FREE, cpuMs: 1 },
    });
    expect(priceFor({ max: 2, perUnit: { steps: 0.5 } })).toMatchObject({ unitMicros: { ...FREE, steps: 500_000 } });
  });
});

describe('a run that is metered', () => {
  let agents: Agents;
  beforeAll(async () => {
    agents = await startAgents();
    const capped = { base: 2, max: 2.5, perUnit: { steps: 1 } };
    await agents.publish(definitionOf('succeeds', '1 + 1', { pricing: capped }));
    await agents.publish(definitionOf('fails', '$error("no")', { pricing: capped }));
    const limits = { wallMs: 500 };
    await agents.publish(definitionOf('hangs', HANGING, { limits }));
    await agents.publish(
      definitionOf('hangs-metered', HANGING, { limits, pricing: { base: 1, max: 100, perUnit: { cpuMs: 0.001 } } }),
    );
    await agents.publish(
      definitionOf('hangs-capped', HANGING, { limits, pricing: { base: 0, max: 0.05, perUnit: { cpuMs: 0.01 } } }),
    );
  });
  afterAll(() => agents.service.stop());

  /** Runs the agent, whatever comes of it. */
  async function run(agent: string) {
    const before = agents.credits.account.spent;
    await agents.run(agent, {}).catch(() => undefined);
    const [execution] = (await agents.call('listAgentExecutions', { agent })).items;
    return {
      status: execution?.status,
      charge: execution?.charge,
      spent: (agents.credits.account.spent - before) / 1e6,
      ...(JSON.parse(execution?.usage ?? '') as { steps: number; cpuMs: number }),
    };
  }

  it('costs no more than max when it succeeds', async () => {
    expect(await run('succeeds')).toMatchObject({ status: 'succeeded', charge: 2.5, spent: 2.5, steps: 3 });
  });

  it('costs no more than max when it fails, and is not charged the base price', async () => {
    const failed = await run('fails');
    expect(failed.steps).toBeGreaterThan(2.5);
    expect(failed).toMatchObject({ status: 'failed', charge: 2.5, spent: 2.5 });
  });

  it('costs its processor time when it ends by time, also inside one built-in function', async () => {
    const { cpuMs, ...ended } = await run('hangs-metered');
    expect(cpuMs).toBeGreaterThan(0);
    expect(ended).toMatchObject({ status: 'timed_out', charge: cpuMs / 1_000, spent: cpuMs / 1_000 });
    expect(await run('hangs-capped')).toMatchObject({ status: 'timed_out', charge: 0.05, spent: 0.05 });
  });

  it('shows its processor time, also when that costs nothing', async () => {
    const { cpuMs, ...ended } = await run('hangs');
    expect(cpuMs).toBeGreaterThan(0);
    expect(ended).toMatchObject({ status: 'timed_out', charge: 0, spent: 0 });
  });
});
