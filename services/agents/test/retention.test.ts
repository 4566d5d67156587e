import { DAY_MS } from 'platform/core/clock.ts';
import { definitionOf } from './fixture.ts';
import { simulateProcesses } from './simulated-processes.ts';
import { getAgentExecution } from '../src/executions/get-agent-execution.ts';
import { retentionJob } from '../src/jobs/retention.ts';

describe('retention', () => {
  it('removes idempotency keys after 1 day, payloads after 30, executions after 90, and nothing sooner', async () => {
    const simulation = await simulateProcesses();
    await simulation.publish(definitionOf('echo', '1'));
    await simulation.run(simulation.healthy, 'echo', 'key');
    const remaining = async () => [
      await simulation.keys(),
      await simulation.payloads(),
      (await simulation.records()).length,
    ];
    const round = () => retentionJob(simulation.healthy).run(new AbortController().signal);
    expect([await round(), await remaining()]).toEqual([0, [1, 1, 1]]);
    simulation.advance(DAY_MS + 1_000);
    expect([await round(), await remaining()]).toEqual([1, [0, 1, 1]]);
    expect((await simulation.run(simulation.healthy, 'echo', 'key')).idempotencyReplayed).toBeUndefined();
    expect(await simulation.markSettled()).toBe(2);
    simulation.advance(29 * DAY_MS);
    expect([await round(), await remaining()]).toEqual([2, [0, 1, 2]]);
    const id = (await simulation.records())[0]!._id;
    expect(await getAgentExecution(simulation.healthy, { id }, simulation.context())).toMatchObject({
      agentExecution: { id, status: 'succeeded', charge: 1, args: undefined, output: undefined, messages: [] },
    });
    simulation.advance(60 * DAY_MS);
    expect([await round(), await remaining()]).toEqual([2, [0, 0, 1]]);
    await simulation.close();
  });

  it('keeps an execution that is not settled', async () => {
    const simulation = await simulateProcesses();
    await simulation.publish(definitionOf('echo', '1'));
    const unsettled = simulation.process((step, side) => {
      if (step === 'settle' && side === 'before') throw new Error('credits are down');
    });
    await simulation.run(unsettled, 'echo');
    simulation.advance(400 * DAY_MS);
    await retentionJob(simulation.healthy).run(new AbortController().signal);
    expect(await simulation.records()).toMatchObject([{ status: 'succeeded', leaseUntil: expect.any(Number) }]);
    await simulation.close();
  });
});
