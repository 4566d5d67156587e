import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Writable } from 'node:stream';
import pino from 'pino';
import {
  EventsTooLargeError,
  MAX_EVENT_BYTES,
  type CloudEvent,
  type EventBus,
  type EventText,
  type Topic,
} from 'platform/events/bus.ts';
import { auditEntryOp, eventOp, OUTBOX } from 'platform/events/outbox.ts';
import { RELAY_PACE_MS, relayJob } from 'platform/events/relay.ts';
import { openSqliteBus } from 'platform/events/sqlite/bus.ts';
import { startJobs } from 'platform/jobs/jobs.ts';
import { LEASES } from 'platform/jobs/lease.ts';
import { makeLog } from 'platform/core/log.ts';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import { collection, insert, type OpenStore, type OrganizationDocument } from 'platform/store/store.ts';
import { Seen } from './seen.ts';

interface Note extends OrganizationDocument {
  n: number;
}
const NOTES = collection<Note>('notes', { scope: 'organization' });
const TOPIC = 'memory.change.v1';
const notAborted = new AbortController().signal;
const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n);
const numberOf = (event: CloudEvent): number => event.data.n as number;

const numberIn = ({ text }: EventText): number => numberOf(JSON.parse(text) as CloudEvent);

describe('the relay', () => {
  let folder: string;
  let store: OpenStore;
  let bus: EventBus;
  const storeFile = (): string => join(folder, 'store.sqlite');
  const eventFile = (): string => join(folder, 'events.sqlite');
  const openStore = (): Promise<OpenStore> => openSqliteStore(storeFile(), [OUTBOX, NOTES, LEASES]);

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'relay-'));
    [store, bus] = await Promise.all([openStore(), openSqliteBus(eventFile())]);
  });
  afterEach(async () => {
    await Promise.all([store.close(), bus.close()]);
    rmSync(folder, { recursive: true });
  });

  const write = (n: number, topic: Topic = TOPIC): Promise<void> =>
    store.store.apply('o', [
      insert(NOTES, { _id: `${topic}-${n}`, organizationId: 'o', n }),
      eventOp({
        topic,
        source: '/test',
        type: 'note.written.v1',
        organizationId: 'o',
        subject: `notes/${n}`,
        sequence: 1,
        time: '2026-01-01T00:00:00.000Z',
        data: { n },
      }),
    ]);
  const relay = (via: Pick<EventBus, 'publish'> = bus, log = makeLog('test', 'silent'), intervalMs = 1) =>
    relayJob({ platformStore: store.platformStore, bus: via, intervalMs, log });
  /** The bus, which rejects events with these numbers as too large and records the events that it accepts. */
  function rejectingTooLarge(tooLarge: ReadonlySet<number>): Pick<EventBus, 'publish'> & { accepted: Seen<number> } {
    const accepted = new Seen<number>();
    return {
      accepted,
      async publish(topic, events) {
        const [rejected, taken] = [
          events.filter((event) => tooLarge.has(numberIn(event))),
          events.filter((event) => !tooLarge.has(numberIn(event))),
        ];
        await bus.publish(topic, taken);
        for (const event of taken) accepted.add(numberIn(event));
        if (rejected.length > 0)
          throw new EventsTooLargeError(
            'too large',
            rejected.map(({ id }) => id),
          );
      },
    };
  }
  const waiting = (topic: Topic = TOPIC): Promise<number> => store.platformStore.count(OUTBOX, { topic });
  async function consume(topic: Topic = TOPIC): Promise<Seen<CloudEvent>> {
    const seen = new Seen<CloudEvent>();
    await bus.subscribe(topic, 'test', async (event) => seen.add(event), { maxAttempts: 1, retryDelayMs: 1 });
    return seen;
  }
  /** The bus, which records the events that it accepts. */
  function recording(): Pick<EventBus, 'publish'> & { accepted: number[] } {
    const accepted: number[] = [];
    return {
      accepted,
      publish: async (topic, events) => {
        await bus.publish(topic, events);
        accepted.push(...events.map(numberIn));
      },
    };
  }

  it('publishes every event of the outbox in the order of writing, over many batches, and counts them', async () => {
    for (const n of upTo(1_050)) await write(n);
    expect(await relay().run(notAborted)).toBe(1_050);
    expect(await waiting()).toBe(0);
    const seen = await consume();
    await seen.count(1_050);
    expect(seen.items.map(numberOf)).toEqual(upTo(1_050));
    expect(await relay().run(notAborted)).toBe(0);
  });

  it('publishes complete CloudEvents; absent fields of an audit entry are null', async () => {
    const actor = { kind: 'user', id: 'u', name: 'Ada', via: 'console' };
    await write(7);
    await store.store.apply('o', [
      auditEntryOp({
        source: '/auth',
        organizationId: 'o',
        action: 'user.create',
        outcome: 'success',
        actor,
        requestId: 'r',
        time: '2026-01-01T00:00:00.000Z',
      }),
    ]);
    await relay().run(notAborted);
    const [change, entry] = [await consume(), await consume('audit.v1')];
    await Promise.all([change.count(1), entry.count(1)]);
    const envelope = {
      specversion: '1.0',
      id: expect.any(String),
      time: '2026-01-01T00:00:00.000Z',
      datacontenttype: 'application/json',
      organizationid: 'o',
      partitionkey: 'o',
      sequence: 1,
    };
    expect(change.items).toEqual([
      { ...envelope, source: '/test', type: 'note.written.v1', subject: 'notes/7', data: { n: 7 } },
    ]);
    expect(entry.items).toEqual([
      {
        ...envelope,
        source: '/auth',
        type: 'audit.entry.v1',
        subject: `entries/${entry.items[0]!.id}`,
        data: { action: 'user.create', outcome: 'success', actor, target: null, code: null, count: 1, requestId: 'r' },
      },
    ]);
  });

  it('that is killed after the bus acknowledged and before it removes the events publishes them again', async () => {
    for (const n of upTo(20)) await write(n);
    await store.close();
    const child = spawn(process.execPath, [join(import.meta.dirname, 'relay-child.ts'), storeFile(), eventFile()], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    expect(await once(child, 'close')).toEqual([null, 'SIGKILL']);
    store = await openStore();
    const seen = await consume();
    await seen.count(20);
    expect(await waiting()).toBe(20);
    const again = recording();
    expect(await relay(again).run(notAborted)).toBe(20);
    expect(again.accepted).toEqual(upTo(20));
    expect(await waiting()).toBe(0);
  });

  it('loses nothing when two of them run at once while events are written', async () => {
    for (const n of upTo(300)) await write(n);
    const [one, other] = [recording(), recording()];
    const writing = Promise.all(upTo(100).map((n) => write(300 + n)));
    await Promise.all([relay(one).run(notAborted), relay(other).run(notAborted), writing]);
    await relay().run(notAborted);
    expect(await waiting()).toBe(0);
    expect(one.accepted.length + other.accepted.length).toBeGreaterThan(400);
    // The bus may deliver an event again that both have published.
    await (await consume()).until((items) => new Set(items.map(numberOf)).size === 400);
  });

  it('keeps the events of a topic on which publishing fails, publishes the others and rejects', async () => {
    for (const n of upTo(3)) {
      await write(n);
      await write(n, 'audit.v1');
    }
    const failing: Pick<EventBus, 'publish'> = {
      async publish(topic, events) {
        if (topic === 'audit.v1') throw new Error('broker down');
        await bus.publish(topic, events);
      },
    };
    await expect(relay(failing).run(notAborted)).rejects.toThrow('broker down');
    expect([await waiting(), await waiting('audit.v1')]).toEqual([0, 3]);
    expect(await relay().run(notAborted)).toBe(3);
  });

  it('keeps an event that the bus rejects as too large, logs it once, publishes the others and succeeds', async () => {
    for (const n of upTo(1_050)) await write(n);
    const tooLarge = new Set([0, 499, 500, 1_049]);
    const via = rejectingTooLarge(tooLarge);
    const logged: { level: number; topic: string; events: string[] }[] = [];
    const job = relay(via, pino(new Writable({ write: (line, _, done) => (logged.push(JSON.parse(line)), done()) })));
    expect([await job.run(notAborted), await job.run(notAborted)]).toEqual([1_046, 0]);
    expect(via.accepted.items).toEqual(upTo(1_050).filter((n) => !tooLarge.has(n)));
    const stay = (await store.platformStore.find(OUTBOX, {})).map(({ event }) => JSON.parse(event) as CloudEvent);
    expect(stay.map(numberOf)).toEqual([...tooLarge]);
    expect(logged.map(({ level, topic }) => [level, topic])).toEqual(
      logged.map(() => [pino.levels.values.error, TOPIC]),
    );
    expect(logged.flatMap(({ events }) => events)).toEqual(stay.map(({ id }) => id));
    expect(await relay().run(notAborted)).toBe(4);
  });

  it('still runs at once on request while an event that is too large stays', async () => {
    const via = rejectingTooLarge(new Set([0]));
    await write(0);
    const log = makeLog('test', 'silent');
    // Its interval is longer than this test may take.
    const jobs = startJobs([relay(via, log, 3_600_000)], {
      platformStore: store.platformStore,
      owner: 'test',
      leaseMs: 10_000,
      log,
    });
    for (const n of [1, 2, 3]) {
      await write(n);
      jobs.runSoon('relay');
      await via.accepted.count(n);
    }
    await jobs.stop();
    expect(await waiting()).toBe(1);
  });

  it('publishes the first event at once, and those that follow quickly in few batches of all topics', async () => {
    const { exec } = DatabaseSync.prototype;
    const log = makeLog('test', 'silent');
    const via = rejectingTooLarge(new Set());
    const jobs = startJobs([relay(via, log, 3_600_000)], {
      platformStore: store.platformStore,
      owner: 'test',
      leaseMs: 10_000,
      log,
    });
    // The round at the start has ended, so the first event starts the next one.
    await jobs.runNow('relay');
    await write(0);
    jobs.runSoon('relay');
    await via.accepted.count(1);

    let commits = 0;
    DatabaseSync.prototype.exec = function (sql) {
      if (sql === 'COMMIT') commits++;
      return exec.call(this, sql);
    };
    const from = performance.now();
    try {
      for (const n of upTo(400)) {
        await Promise.all([write(n + 1), write(n + 1, 'audit.v1')]);
        jobs.runSoon('relay');
      }
      await via.accepted.count(801);
    } finally {
      DatabaseSync.prototype.exec = exec;
    }
    const paces = (performance.now() - from) / RELAY_PACE_MS;
    await jobs.stop();
    process.stdout.write(`${commits} commits of the event file for 800 events, in ${paces.toFixed(1)} paces\n`);
    // A round has one commit for both topics.
    expect(commits).toBeLessThanOrEqual(2 + paces);
  });

  it('never gets an event that is too large for every broker: making the event fails', () => {
    const withText = (text: string) => () =>
      eventOp({
        topic: TOPIC,
        source: '/test',
        type: 'note.written.v1',
        organizationId: 'o',
        subject: 'notes/1',
        sequence: 1,
        time: '2026-01-01T00:00:00.000Z',
        data: { text },
      });
    expect(withText('é'.repeat(MAX_EVENT_BYTES / 2))).toThrow(
      `an event of type note.written.v1 is larger than ${MAX_EVENT_BYTES} bytes`,
    );
    expect(withText('é'.repeat(MAX_EVENT_BYTES / 2 - 500))).not.toThrow();
  });

  it('has one publish in flight per topic', async () => {
    for (const n of upTo(750)) await write(n);
    let running = 0;
    let most = 0;
    await relay({
      async publish(topic, events) {
        most = Math.max(most, ++running);
        await bus.publish(topic, events);
        running--;
      },
    }).run(notAborted);
    expect(most).toBe(1);
  });

  it('stops between batches when its round is aborted', async () => {
    for (const n of upTo(750)) await write(n);
    const abort = new AbortController();
    const count = await relay({
      async publish(topic, events) {
        await bus.publish(topic, events);
        abort.abort();
      },
    }).run(abort.signal);
    expect([count, await waiting()]).toEqual([500, 250]);
  });
});
