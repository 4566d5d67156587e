import type { FairScheduler } from 'platform/core/fair-scheduler.ts';
import { listRunnableAgents } from '../src/definitions/list-runnable-agents.ts';
import { definitionOf } from './fixture.ts';
import { simulateProcesses, type Simulation } from './simulated-processes.ts';
import { testPool } from './runtimes/runners/pool-fixture.ts';

/** A scheduler that notes whose turn each piece of work took. */
function notedTurns() {
  const turns: string[] = [];
  const schedule: FairScheduler = async (organizationId, work) => {
    turns.push(organizationId);
    return Promise.try(work);
  };
  return { turns, schedule };
}

describe('organizations take turns', () => {
  let simulation: Simulation;
  beforeAll(async () => {
    simulation = await simulateProcesses();
    await simulation.publish(definitionOf('one', '1'));
    await simulation.publish(definitionOf('two', '2'));
  });
  afterAll(() => simulation.close());

  it('when args are parsed, and when they are hashed, once', async () => {
    const { turns, schedule } = notedTurns();
    const deps = { ...simulation.healthy, schedule };
    await simulation.run(deps, 'one');
    expect(turns).toEqual([simulation.organizationId]);
    await simulation.run(deps, 'one', 'key');
    await simulation.run(deps, 'one', 'key');
    expect(turns).toHaveLength(5);
  });

  it('but an agent that does not exist takes none', async () => {
    const { turns, schedule } = notedTurns();
    const deps = { ...simulation.healthy, schedule };
    for (const key of [undefined, 'another'])
      await expect(simulation.run(deps, 'nope', key, '{"no": ')).rejects.toMatchObject({ reason: 'NOT_FOUND' });
    expect(turns).toEqual([]);
  });

  it('when definitions are read for the list', async () => {
    const { turns, schedule } = notedTurns();
    const context = simulation.context();
    await listRunnableAgents({ ...simulation.healthy, schedule }, { include: undefined }, context);
    expect(turns).toEqual([]);
    await listRunnableAgents({ ...simulation.healthy, schedule }, { include: 'version' }, context);
    expect(turns).toEqual([simulation.organizationId, simulation.organizationId]);
  });

  it('when a long output is checked, and a short one takes none', async () => {
    const { turns, schedule } = notedTurns();
    const pool = testPool({ schedule });
    try {
      expect(await pool.run('1 + 1', { organizationId: 'a' })).toMatchObject({ outcome: 'succeeded' });
      expect(turns).toEqual([]);
      const long = '$pad("", 20000, "x")';
      expect(await pool.run(long, { organizationId: 'b' })).toMatchObject({ outcome: 'succeeded' });
      expect(turns).toEqual(['b']);
    } finally {
      await pool.stop();
    }
  });
});
