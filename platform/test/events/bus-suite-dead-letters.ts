import { isDeepStrictEqual } from 'node:util';
import {
  RejectedEventError,
  eventText,
  type CloudEvent,
  type EventBus,
  type Subscription,
} from 'platform/events/bus.ts';
import { eventually } from 'platform/service/test-end.ts';
import { numberOf, TOPIC, type BusEngine } from './bus-suite.ts';
import { eventOf } from './event-of.ts';
import { Seen } from './seen.ts';

export interface Given {
  /** Of the test that runs. */
  now(): { engine: BusEngine; organization: string; group: string };
  open(): Promise<EventBus>;
  events(count: number, from?: number): CloudEvent[];
  subscribe(
    bus: EventBus,
    handler: (event: CloudEvent) => Promise<void>,
    asGroup?: string,
    retries?: { maxAttempts: number; retryDelayMs: number },
  ): Promise<Subscription>;
}

/** What every engine guarantees for events that a group cannot handle, and says of what a group has before it. */
export function deadLettersSuite({ now, open, events, subscribe }: Given): void {
  let { engine, organization, group } = {} as ReturnType<Given['now']>;
  beforeEach(() => {
    ({ engine, organization, group } = now());
  });

  it('moves an event that fails maxAttempts times to the dead letters of that group alone', async () => {
    const bus = await open();
    const seen = new Seen<number>();
    const sound = new Seen<number>();
    const published = events(3);
    await subscribe(bus, async (event) => {
      seen.add(numberOf(event));
      if (numberOf(event) === 1) throw new Error('poison');
    });
    await subscribe(bus, async (event) => sound.add(numberOf(event)), `${group}-sound`);
    await bus.publish(TOPIC, published.map(eventText));
    await Promise.all([seen.count(5), sound.count(3)]);
    expect(seen.items).toEqual([0, 1, 1, 1, 2]);
    expect(sound.items).toEqual([0, 1, 2]);
    expect(await engine.deadLetters(TOPIC, group)).toEqual([{ id: published[1]!.id, error: 'Error: poison' }]);
    expect(await engine.deadLetters(TOPIC, `${group}-sound`)).toEqual([]);
  });

  it('moves an event that its handler rejects to the dead letters at once, and delivers the next', async () => {
    const bus = await open();
    const seen = new Seen<number>();
    const published = events(3);
    const handler = async (event: CloudEvent): Promise<void> => {
      seen.add(numberOf(event));
      if (numberOf(event) === 1) throw new RejectedEventError('never');
    };
    await subscribe(bus, handler, group, { maxAttempts: 600, retryDelayMs: 3_600_000 });
    await bus.publish(TOPIC, published.map(eventText));
    await seen.count(3);
    expect(seen.items).toEqual([0, 1, 2]);
    expect(await engine.deadLetters(TOPIC, group)).toEqual([
      { id: published[1]!.id, error: 'RejectedEventError: never' },
    ]);
  });

  /** Publishes `count` events; those with these numbers become dead letters of the group. */
  async function makeDeadLetters(bus: EventBus, count: number, ...numbers: number[]): Promise<CloudEvent[]> {
    const published = events(count);
    const attempts = new Seen<number>();
    const member = await subscribe(bus, async (event) => {
      attempts.add(numberOf(event));
      if (numbers.includes(numberOf(event))) throw new Error('poison');
    });
    await bus.publish(TOPIC, published.map(eventText));
    await attempts.count(count + 2 * numbers.length);
    await member.stop();
    return published;
  }
  const idsOf = async (): Promise<string[]> => (await engine.deadLetters(TOPIC, group)).map(({ id }) => id);

  it('tells how many events a group has not handled yet, and how many dead letters there are for it', async () => {
    const bus = await open();
    const own = [eventOf(organization, 0), eventOf(organization, 1), eventOf(organization, 2)];
    const release = Promise.withResolvers<void>();
    const subscription = await bus.subscribe(
      TOPIC,
      group,
      async (event) => {
        if (event.id !== own[1]!.id && event.id !== own[2]!.id) return;
        if (event.id === own[2]!.id) await release.promise;
        throw new RejectedEventError('never');
      },
      { maxAttempts: 1, retryDelayMs: 1 },
    );
    // a broker that is shared has events of other tests, and dead letters of their groups
    await eventually(async () => (await bus.backlog(TOPIC, group)).events === 0);
    const { deadLetters } = await bus.backlog(TOPIC, group);
    const untilBacklog = (of: EventBus, events: number, more: number) =>
      eventually(async () => isDeepStrictEqual(await of.backlog(TOPIC, group), { events, deadLetters: deadLetters + more })); // prettier-ignore
    await bus.publish(TOPIC, own.map(eventText));
    await bus.publish('memory.change.v1', [eventText(eventOf(organization, 3))]);
    await untilBacklog(bus, 1, 1);
    release.resolve();
    await untilBacklog(bus, 0, 2);
    await subscription.stop();
    await bus.publish(TOPIC, [eventOf(organization, 4), eventOf(organization, 5)].map(eventText));
    await untilBacklog(await open(), 2, 2);
  });

  it('replays the dead letters of one group unchanged, oldest first, and removes them', async () => {
    const bus = await open();
    const published = await makeDeadLetters(bus, 5, 1, 3, 4);
    const [replayed, others] = [new Seen<CloudEvent>(), new Seen<CloudEvent>()];
    expect(await bus.replay(TOPIC, `${group}-other`, async (event) => others.add(event))).toBe(0);
    expect(await bus.replay(TOPIC, group, async (event) => replayed.add(event))).toBe(3);
    expect(replayed.items).toEqual([published[1], published[3], published[4]]);
    expect(others.items).toEqual([]);
    expect(await idsOf()).toEqual([]);
    expect(await bus.replay(TOPIC, group, async (event) => replayed.add(event))).toBe(0);
    expect(replayed.items).toHaveLength(3);
  });

  it('stops a replay at the first event that fails again and keeps it and the later ones for the next replay', async () => {
    const bus = await open();
    const published = await makeDeadLetters(bus, 3, 0, 1, 2);
    const seen = new Seen<number>();
    const failing = bus.replay(TOPIC, group, async (event) => {
      seen.add(numberOf(event));
      if (numberOf(event) === 1) throw new Error('still poison');
    });
    await expect(failing).rejects.toThrow('still poison');
    expect(seen.items).toEqual([0, 1]);
    expect(await idsOf()).toEqual([published[1]!.id, published[2]!.id]);
    expect(await (await open()).replay(TOPIC, group, async (event) => seen.add(numberOf(event)))).toBe(2);
    expect(seen.items).toEqual([0, 1, 1, 2]);
  });

  it('keeps a dead letter that is rejected again, and replays those after it', async () => {
    const bus = await open();
    const published = await makeDeadLetters(bus, 3, 0, 1, 2);
    const replay = (rejected: number | undefined, seen: Seen<number>): Promise<number> =>
      bus.replay(TOPIC, group, async (event) => {
        seen.add(numberOf(event));
        if (numberOf(event) === rejected) throw new RejectedEventError('never');
      });
    for (const expected of [[0, 1, 2], [0]]) {
      const seen = new Seen<number>();
      expect(await replay(0, seen)).toBe(expected.length - 1);
      expect(seen.items).toEqual(expected);
      expect(await idsOf()).toEqual([published[0]!.id]);
    }
    expect(await replay(undefined, new Seen())).toBe(1);
    expect(await idsOf()).toEqual([]);
  });
}
