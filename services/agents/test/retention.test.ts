import { DAY_MS } from 'platform/core/clock.ts';
import { definitionOf } from './agents-fixture.ts';
import { openWorld } from './processes.ts';
import { retention } from '../src/jobs/retention.ts';

describe('retention', () => {
  it('removes keys after a day, payloads after thirty, executions after ninety, and nothing sooner', async () => {
    const world = await openWorld();
    await world.publish(definitionOf('echo', '1'));
    await world.run(world.healthy, 'echo', 'key');
    const left = async () => [await world.keys(), await world.payloads(), (await world.records()).length];
    const round = () => retention(world.healthy).run(new AbortController().signal);
    expect([await round(), await left()]).toEqual([0, [1, 1, 1]]);
    world.advance(DAY_MS + 1_000);
    expect([await round(), await left()]).toEqual([1, [0, 1, 1]]);
    expect((await world.run(world.healthy, 'echo', 'key')).idempotencyReplayed).toBeUndefined();
    world.advance(29 * DAY_MS);
    expect([await round(), await left()]).toEqual([2, [0, 1, 2]]);
    world.advance(60 * DAY_MS);
    expect([await round(), await left()]).toEqual([2, [0, 0, 1]]);
    await world.close();
  });

  it('keeps an execution that is not settled', async () => {
    const world = await openWorld();
    await world.publish(definitionOf('echo', '1'));
    const unsettled = world.process((step, side) => {
      if (step === 'settle' && side === 'before') throw new Error('credits are down');
    });
    await world.run(unsettled, 'echo');
    world.advance(400 * DAY_MS);
    await retention(world.healthy).run(new AbortController().signal);
    expect(await world.records()).toMatchObject([{ status: 'succeeded', leaseUntil: expect.any(Number) }]);
    await world.close();
  });
});
