import { Writable } from 'node:stream';
import pino from 'pino';
import { eventText, type CloudEvent, type EventBus } from 'platform/events/bus.ts';
import { openKafkaBus } from 'platform/events/kafka/bus.ts';
import { setTimeout as delay } from 'node:timers/promises';
import { startKafka, type PrivateServer } from '../../../dev-servers/src/private-server.ts';
import { eventOf } from './event-of.ts';
import { newPrefix, optionsFor, publishWithRetries } from './kafka-fixture.ts';
import { startAwakeTime, within } from '../awake-time.ts';
import { tcpProxy, type TcpProxy } from '../rpc/tcp-proxy.ts';
import { Seen } from './seen.ts';

const TOPIC = 'audit.v1';
const TIMEOUT_MS = 2_000;
/** Added to a time-out, for a busy machine. */
const SLACK_MS = 4_000;

describe('a broker that fails under load', () => {
  let server: PrivateServer;
  let proxy: TcpProxy;
  let bus: EventBus;
  let logged: Seen<{ msg: string }>;
  beforeAll(async () => {
    server = await startKafka();
    proxy = await tcpProxy(server.port);
    await server.restart({ args: [`advertised.listeners=PLAINTEXT://127.0.0.1:${proxy.port}`] });
  });
  beforeEach(async () => {
    logged = new Seen();
    const log = pino(new Writable({ write: (line, _, done) => (logged.add(JSON.parse(line)), done()) }));
    bus = await openKafkaBus({
      ...optionsFor([`127.0.0.1:${proxy.port}`], newPrefix()),
      timeoutMs: TIMEOUT_MS,
      sessionTimeoutMs: 3 * TIMEOUT_MS,
      log,
    });
  });
  afterEach(() => bus.close());
  afterAll(async () => {
    await server.stop();
    proxy.close();
  });

  /**
   * Publishes one event after the other, each until it succeeds, as the relay does. Records errors and how long they
   * took.
   */
  function load() {
    const acknowledged = new Seen<CloudEvent>();
    const failures = new Seen<{ error: unknown; afterMs: number }>();
    let wanted = true;
    const ended = (async () => {
      for (let n = 0; wanted; n++) {
        const event = eventOf(`organization-${n % 7}`, n);
        for (let taken = false; !taken;) {
          const awakeMs = startAwakeTime();
          const error = await bus.publish(TOPIC, [eventText(event)]).then(
            () => undefined,
            (reason: unknown) => reason,
          );
          const afterMs = awakeMs();
          taken = error === undefined;
          if (taken) continue;
          failures.add({ error, afterMs });
          await delay(50);
        }
        acknowledged.add(event);
      }
    })();
    return {
      acknowledged,
      failures,
      stop: () => {
        wanted = false;
        return ended;
      },
    };
  }

  /**
   * Publishes and consumes while `fail` runs; expects that nothing acknowledged is lost and the order per
   * organization.
   */
  async function expectNoLoss(
    fail: (failures: Seen<unknown>) => Promise<void>,
  ): Promise<{ error: unknown; afterMs: number }[]> {
    const seen = new Seen<CloudEvent>();
    await bus.subscribe(TOPIC, 'g', async (event) => seen.add(event), { maxAttempts: 3, retryDelayMs: 10 });
    const { acknowledged, failures, stop } = load();
    await acknowledged.count(100);
    await seen.count(100);
    await fail(failures);
    const before = acknowledged.items.length;
    await acknowledged.count(before + 200);
    await stop();
    const handled = new Set<string>();
    await seen.until((items) => {
      for (const { id } of items.slice(handled.size)) handled.add(id);
      return items.length >= acknowledged.items.length && acknowledged.items.every(({ id }) => handled.has(id));
    });
    const firsts = [...new Map(seen.items.map((event) => [event.id, event])).values()];
    for (let o = 0; o < 7; o++) {
      const numbers = firsts
        .filter(({ organizationid }) => organizationid === `organization-${o}`)
        .map(({ data }) => data.n as number);
      expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
    }
    console.info(
      `${acknowledged.items.length} acknowledged, ${failures.items.length} failed publishes, ` +
        `${handled.size} handled, ${seen.items.length - handled.size} of them again, 0 missing`,
    );
    return failures.items;
  }

  const unavailable = expect.objectContaining({ reason: 'UNAVAILABLE', headers: { 'Retry-After': '1' } });
  function expectUnavailableInTime(failed: readonly { error: unknown; afterMs: number }[]): void {
    expect(failed.map(({ error }) => error)).toEqual(failed.map(() => unavailable));
    expect(Math.max(...failed.map(({ afterMs }) => afterMs))).toBeLessThan(TIMEOUT_MS + SLACK_MS);
  }

  it('paused: every publish fails within its time-out, the next one after the pause succeeds, and nothing is lost', async () => {
    const failed = await expectNoLoss(async (failures) => {
      await server.pause();
      await failures.count(3);
      server.resume();
    });
    expectUnavailableInTime(failed);
  });

  it('whose answers are lost: every publish fails within its time-out, and events may be stored twice', async () => {
    const failed = await expectNoLoss(async (failures) => {
      proxy.mute();
      await failures.count(3);
      proxy.unmute();
    });
    expectUnavailableInTime(failed);
  });

  it('killed and restarted: publisher and consumer continue by themselves, and nothing acknowledged is lost', async () => {
    const failed = await expectNoLoss(async (failures) => {
      await server.kill();
      await failures.count(2);
      await server.restart();
    });
    expectUnavailableInTime(failed);
  });

  it('paused for longer than a consumer waits: a new consumer is logged and continues', async () => {
    const seen = new Seen<CloudEvent>();
    await bus.subscribe(TOPIC, 'g', async (event) => seen.add(event), { maxAttempts: 3, retryDelayMs: 10 });
    await publishWithRetries(bus, TOPIC, [eventOf('o', 0)]);
    await seen.count(1);
    await server.pause();
    await logged.until((lines) => lines.some(({ msg }) => msg === 'the event consumer ended; a new one starts'));
    server.resume();
    const last = eventOf('o', 1);
    await publishWithRetries(bus, TOPIC, [last]);
    await seen.until((items) => items.some(({ id }) => id === last.id));
  });

  it('paused: a process that stops then waits no longer than its time-outs', async () => {
    const started = new Seen<CloudEvent>();
    await bus.subscribe(TOPIC, 'g', async (event) => started.add(event), { maxAttempts: 3, retryDelayMs: 10 });
    await publishWithRetries(bus, TOPIC, [eventOf('o', 0)]);
    await started.count(1);
    await server.pause();
    await within(3 * TIMEOUT_MS + SLACK_MS, bus.close());
    server.resume();
  });
});
