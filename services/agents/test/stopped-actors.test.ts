import { isActive } from '../src/executions/rules.ts';
import { definitionOf, ENDLESS, until } from './fixture.ts';
import { simulateProcesses } from './simulated-processes.ts';

const LIMITS = { wallMs: 300_000, maxSteps: 1_000_000_000 };

const outcomeOf = (run: Promise<unknown>): Promise<string> =>
  run.then(
    () => 'ran',
    (error: { reason: string }) => error.reason,
  );

/** Two processes with one run each that only a cancellation ends. */
async function twoRuns() {
  const simulation = await simulateProcesses({ leaseMs: 2_000, runners: 2 });
  await simulation.publish(definitionOf('endless', ENDLESS, { limits: LIMITS }));
  const processes = [simulation.healthy, simulation.process()];
  const runs = processes.map((process) => outcomeOf(simulation.run(process, 'endless')));
  await until(async () => (await simulation.records()).filter(({ status }) => status === 'running').length === 2);
  const [{ organizationId, actor }] = (await simulation.records()) as [
    Awaited<ReturnType<typeof simulation.records>>[0],
  ];
  return { simulation, runs, organizationId, tokenId: actor.id };
}

describe('runs of an organization or a token that auth names as stopped', () => {
  it.each(['organizationId', 'tokenId'] as const)('end as cancelled at every replica, by %s', async (what) => {
    const { simulation, runs, ...ids } = await twoRuns();
    simulation.auth.stopped.add(ids[what]);
    expect(await Promise.all(runs)).toEqual(['RUN_CANCELLED', 'RUN_CANCELLED']);
    expect((await simulation.records()).map(({ status }) => status)).toEqual(['cancelled', 'cancelled']);
    expect(simulation.account.reserved).toBe(0);
    await simulation.close();
  });

  it('go on while auth names others or does not answer, and end when it does', async () => {
    const { simulation, runs, tokenId } = await twoRuns();
    const { auth } = simulation;
    const askedAgain = async (): Promise<void> => {
      const before = auth.asked;
      await until(() => auth.asked >= before + 4);
    };
    auth.stopped.add('another');
    await askedAgain();
    auth.isDown = true;
    auth.stopped.add(tokenId);
    await askedAgain();
    expect((await simulation.records()).every(isActive)).toBe(true);
    auth.isDown = false;
    expect(await Promise.all(runs)).toEqual(['RUN_CANCELLED', 'RUN_CANCELLED']);
    await simulation.close();
  });

  it('also end when they begin after the organization was stopped: auth had let the request through before', async () => {
    const { simulation, runs, organizationId } = await twoRuns();
    simulation.auth.stopped.add(organizationId);
    await Promise.all(runs);
    expect(await outcomeOf(simulation.run(simulation.healthy, 'endless'))).toBe('RUN_CANCELLED');
    await simulation.close();
  });
});
