import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import {
  RejectedEventError,
  eventText,
  type CloudEvent,
  type EventBus,
  type Subscription,
  type Topic,
} from 'platform/events/bus.ts';
import { newId } from 'platform/core/ids.ts';
import { deadLettersSuite } from './bus-suite-dead-letters.ts';
import { eventOf } from './event-of.ts';
import { Seen } from './seen.ts';

export interface BusEngine {
  /** Opens another connection to the same broker, as another process would. */
  open(): Promise<EventBus>;
  /** Engine and address for `bus-child.ts`. */
  readonly child: readonly string[];
  deadLetters(topic: Topic, group: string): Promise<{ id: string; error: string }[]>;
  remove(): Promise<void>;
}

export const childArguments = (engine: BusEngine, ...words: string[]): string[] => [
  join(import.meta.dirname, 'bus-child.ts'),
  ...engine.child,
  ...words,
];

export const TOPIC = 'audit.v1';
export const numberOf = (event: CloudEvent): number => event.data.n as number;
const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

/**
 * What every engine of the event port guarantees. Each test has its own organizations and groups, because a broker
 * may be shared.
 */
export function busSuite(name: string, start: () => Promise<BusEngine>): void {
  describe(`the event bus on ${name}`, () => {
    let engine: BusEngine;
    let buses: EventBus[];
    let organization: string;
    let group: string;

    beforeEach(async () => {
      engine = await start();
      buses = [];
      organization = newId();
      group = `group-${newId()}`;
    });
    afterEach(async () => {
      await Promise.all(buses.map((bus) => bus.close()));
      await engine.remove();
    });

    async function open(): Promise<EventBus> {
      const bus = await engine.open();
      buses.push(bus);
      return bus;
    }
    async function close(bus: EventBus): Promise<void> {
      buses = buses.filter((other) => other !== bus);
      await bus.close();
    }
    const events = (count: number, from = 0): CloudEvent[] => upTo(count).map((n) => eventOf(organization, from + n));
    const subscribe = (
      bus: EventBus,
      handler: (event: CloudEvent) => Promise<void>,
      asGroup = group,
      retries = { maxAttempts: 3, retryDelayMs: 1 },
    ): Promise<Subscription> =>
      bus.subscribe(
        TOPIC,
        asGroup,
        async (event) => {
          if (event.organizationid === organization) await handler(event);
        },
        retries,
      );

    deadLettersSuite({ now: () => ({ engine, organization, group }), open, events, subscribe });

    it('answers a check', async () => {
      await expect((await open()).check()).resolves.toBeUndefined();
    });

    it('delivers every event to each group, unchanged and in order', async () => {
      const bus = await open();
      const groups = [new Seen<CloudEvent>(), new Seen<CloudEvent>()];
      const published = events(120);
      await bus.publish(TOPIC, published.slice(0, 50).map(eventText));
      await Promise.all(
        groups.map((seen, index) => subscribe(bus, async (event) => seen.add(event), `${group}-${index}`)),
      );
      for (const event of published.slice(50, 60)) await bus.publish(TOPIC, [eventText(event)]);
      await bus.publish(TOPIC, published.slice(60).map(eventText));
      for (const seen of groups) {
        await seen.count(120);
        expect(seen.items).toEqual(published);
      }
    });

    it('keeps the topics apart', async () => {
      const bus = await open();
      const seen = new Seen<number>();
      const [other, own] = events(2);
      await bus.publish('memory.change.v1', [eventText(other!)]);
      await bus.publish(TOPIC, [eventText(own!)]);
      await subscribe(bus, async (event) => seen.add(numberOf(event)));
      await seen.count(1);
      expect(seen.items).toEqual([1]);
    });

    it('retries a failing event before it delivers the next', async () => {
      const bus = await open();
      const seen = new Seen<number>();
      await subscribe(bus, async (event) => {
        seen.add(numberOf(event));
        if (numberOf(event) === 1 && seen.items.length < 4) throw new Error('not yet');
      });
      await bus.publish(TOPIC, events(3).map(eventText));
      await seen.count(5);
      expect(seen.items).toEqual([0, 1, 1, 1, 2]);
      expect(await engine.deadLetters(TOPIC, group)).toEqual([]);
    });

    it('pauses before it retries a failing event', async () => {
      const bus = await open();
      const [seen, others] = [new Seen<number>(), new Seen<number>()];
      const failing = async (event: CloudEvent): Promise<void> => {
        seen.add(numberOf(event));
        throw new Error('not yet');
      };
      await subscribe(bus, failing, group, { maxAttempts: 600, retryDelayMs: 3_600_000 });
      await subscribe(bus, async (event) => others.add(numberOf(event)), `${group}-others`);
      await bus.publish(TOPIC, events(1).map(eventText));
      await seen.count(1);
      // time enough for many attempts
      for (let n = 1; n < 30; n++) {
        await bus.publish(TOPIC, events(1, n).map(eventText));
        await others.count(n + 1);
      }
      expect(seen.items).toEqual([0]);
      expect(await engine.deadLetters(TOPIC, group)).toEqual([]);
    });

    it('gives a handler of several events what was published together, in order, and then goes on after it', async () => {
      const bus = await open();
      const published = events(450);
      await bus.publish(TOPIC, published.map(eventText));
      const seen = new Seen<CloudEvent>();
      const sizes: number[] = [];
      const note = (event: CloudEvent): void => void (event.organizationid === organization && seen.add(event));
      const options = {
        maxAttempts: 1,
        retryDelayMs: 1,
        async handleTogether(several: readonly CloudEvent[]): Promise<void> {
          sizes.push(several.length);
          several.forEach(note);
        },
      };
      const member = await bus.subscribe(TOPIC, group, async (event) => note(event), options);
      await seen.count(450);
      await member.stop();
      expect(Math.max(...sizes)).toBeGreaterThan(100);
      await bus.publish(TOPIC, events(3, 450).map(eventText));
      await bus.subscribe(TOPIC, group, async (event) => note(event), options);
      await seen.count(453);
      expect(seen.items.map(numberOf)).toEqual(upTo(453));
    });

    it('gives the handler one event after the other when they cannot be handled together', async () => {
      const bus = await open();
      const published = events(30);
      await bus.publish(TOPIC, published.map(eventText));
      const seen = new Seen<number>();
      const handler = async (event: CloudEvent): Promise<void> => {
        if (event.organizationid !== organization) return;
        if (numberOf(event) === 7) throw new RejectedEventError('never');
        seen.add(numberOf(event));
      };
      await bus.subscribe(TOPIC, group, handler, {
        maxAttempts: 600,
        retryDelayMs: 3_600_000,
        handleTogether: () => Promise.reject(new Error('one of them is bad')),
      });
      await seen.count(29);
      expect(seen.items).toEqual(upTo(30).filter((n) => n !== 7));
      expect(await engine.deadLetters(TOPIC, group)).toEqual([
        { id: published[7]!.id, error: 'RejectedEventError: never' },
      ]);
    });

    it('lets a group of one name consume several topics, each on its own', async () => {
      const bus = await open();
      const seen = { [TOPIC]: new Seen<number>(), 'memory.change.v1': new Seen<number>() };
      for (const [topic, numbers] of Object.entries(seen) as [Topic, Seen<number>][]) {
        await bus.subscribe(
          topic,
          group,
          async (event) => {
            if (event.organizationid === organization) numbers.add(numberOf(event));
          },
          { maxAttempts: 1, retryDelayMs: 1 },
        );
      }
      await bus.publish(TOPIC, events(2).map(eventText));
      await bus.publish('memory.change.v1', events(3, 10).map(eventText));
      await Promise.all([seen[TOPIC].count(2), seen['memory.change.v1'].count(3)]);
      expect([seen[TOPIC].items, seen['memory.change.v1'].items]).toEqual([
        [0, 1],
        [10, 11, 12],
      ]);
    });

    it('continues after the last handled event when it is opened again', async () => {
      const first = await open();
      const before = new Seen<number>();
      await subscribe(first, async (event) => before.add(numberOf(event)));
      await first.publish(TOPIC, events(5).map(eventText));
      await before.count(5);
      await close(first);
      const second = await open();
      const after = new Seen<number>();
      await second.publish(TOPIC, events(5, 5).map(eventText));
      await subscribe(second, async (event) => after.add(numberOf(event)));
      await after.count(5);
      expect(after.items).toEqual([5, 6, 7, 8, 9]);
    });

    it('stops after the running handler, and its event counts as handled', async () => {
      const bus = await open();
      const started = Promise.withResolvers<void>();
      const gate = Promise.withResolvers<void>();
      const subscription = await subscribe(bus, async () => {
        started.resolve();
        await gate.promise;
      });
      await bus.publish(TOPIC, events(2).map(eventText));
      await started.promise;
      const stopped = subscription.stop().then(() => 'stopped');
      expect(await Promise.race([stopped, new Promise((resolve) => setImmediate(resolve, 'running'))])).toBe('running');
      gate.resolve();
      await stopped;
      const next = new Seen<number>();
      await subscribe(bus, async (event) => next.add(numberOf(event)));
      await next.count(1);
      expect(next.items).toEqual([1]);
    });

    it('delivers an event again when its consumer was killed before the offset was committed', async () => {
      const bus = await open();
      const published = events(3);
      await bus.publish(TOPIC, published.map(eventText));
      const child = spawn(process.execPath, childArguments(engine, 'die', group, organization), {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const handled: Buffer[] = [];
      child.stdout.on('data', (chunk: Buffer) => handled.push(chunk));
      const [, signal] = await once(child, 'close');
      expect(signal).toBe('SIGKILL');
      expect(String(Buffer.concat(handled)).trim().split(' ')[1]).toBe(published[0]!.id);
      const seen = new Seen<number>();
      await subscribe(bus, async (event) => seen.add(numberOf(event)));
      await seen.count(3);
      expect(seen.items).toEqual([0, 1, 2]);
    });

    it('never lets two members of a group handle events of one organization at once, and the one that stays takes over', async () => {
      const [one, other] = [await open(), await open()];
      const seen = new Seen<number>();
      let running = 0;
      let most = 0;
      const handler = async (event: CloudEvent): Promise<void> => {
        most = Math.max(most, ++running);
        await new Promise(setImmediate);
        running--;
        seen.add(numberOf(event));
      };
      const member = await subscribe(one, handler);
      await subscribe(other, handler);
      for (let n = 0; n < 60; n += 10) await (n % 20 ? one : other).publish(TOPIC, events(10, n).map(eventText));
      await seen.until((items) => new Set(items).size === 60);
      await member.stop();
      await one.publish(TOPIC, events(10, 60).map(eventText));
      await seen.until((items) => new Set(items).size === 70);
      expect(most).toBe(1);
      expect([...new Set(seen.items)]).toEqual(upTo(70));
    });
  });
}
