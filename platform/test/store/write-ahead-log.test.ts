import { randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { eventText } from 'platform/events/bus.ts';
import { openSqliteBus } from 'platform/events/sqlite/bus.ts';
import { cutBackLogJob } from 'platform/jobs/cut-back-log.ts';
import { makeLog } from 'platform/core/log.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { LOG_LIMIT_BYTES } from 'platform/store/sqlite/database.ts';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import { collection, insert, type OpenStore } from 'platform/store/store.ts';
import { eventOf } from '../events/event-of.ts';

const TEXTS = collection<{ _id: string; organizationId: string; text: string }>('texts', { scope: 'organization' });
const MEBIBYTE = 1_048_576;
const signal = new AbortController().signal;

describe('the write-ahead log of a SQLite file', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let file: string;
  let opened: OpenStore;
  let written: number;
  beforeEach(async () => {
    folder = temporaryFolder();
    file = join(folder.path, 'a.db');
    opened = await openSqliteStore(file, [TEXTS]);
    written = 0;
  });
  afterEach(async () => {
    await opened.close();
    folder.remove();
  });

  const logBytes = (of = file): number => statSync(`${of}-wal`).size;
  /** Writes documents of 64 KiB, a batch of 16 each time. */
  async function writeMebibytes(count: number): Promise<void> {
    for (let n = 0; n < count; n++)
      await opened.store.apply(
        'A',
        Array.from({ length: 16 }, () =>
          insert(TEXTS, { _id: `${++written}`, organizationId: 'A', text: 'x'.repeat(65_536) }),
        ),
      );
  }
  /** Another process that reads the present state of the file until `leave`. */
  function startReader(of = file) {
    const db = new DatabaseSync(of, { readOnly: true });
    db.exec('BEGIN');
    db.prepare('SELECT count(*) FROM sqlite_schema').get();
    return { leave: () => db.close() };
  }

  it('stays small beside the reads of the store, which leave no transaction open', async () => {
    using other = new DatabaseSync(file);
    let largest = 0;
    for (let page = 0; page < 40; page++) {
      const unanswered = opened.store.find('A', TEXTS, {}, { limit: 5 });
      await writeMebibytes(1);
      largest = Math.max(largest, logBytes());
      await opened.store.count('A', TEXTS, {});
      await opened.store.find('A', TEXTS, {}, { limit: 5, ...(page > 0 && { after: [`${page}`] }) });
      // It would be busy if anybody held a transaction.
      expect(other.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()).toMatchObject({ busy: 0, log: 0 });
      await unanswered;
    }
    await writeMebibytes(20);
    largest = Math.max(largest, logBytes());
    expect(largest).toBeLessThan(8 * MEBIBYTE);
  });

  it('is cut back by the first writes after a long reader has left', async () => {
    const reader = startReader();
    await writeMebibytes(40);
    expect(logBytes()).toBeGreaterThan(40 * MEBIBYTE);
    reader.leave();
    await writeMebibytes(2);
    expect(logBytes()).toBeLessThanOrEqual(LOG_LIMIT_BYTES);
  });

  it('is emptied by the job when nobody writes any more, which warns as long as the reader is there', async () => {
    const reader = startReader();
    await writeMebibytes(20);
    const warnings: unknown[] = [];
    const log = { ...makeLog('test', 'silent'), warn: (facts: unknown) => warnings.push(facts) };
    const { run } = cutBackLogJob(opened.cutBackLog!, log);
    await run(signal);
    expect(warnings).toEqual([{ bytesAbove: logBytes() - LOG_LIMIT_BYTES }]);
    reader.leave();
    await run(signal);
    expect(logBytes()).toBe(0);
    expect(warnings).toHaveLength(1);
    expect(await opened.store.count('A', TEXTS, {})).toBe(320);
  });

  it('of the event file is cut back alike', async () => {
    const events = join(folder.path, 'events.db');
    const bus = await openSqliteBus(events, { log: makeLog('test', 'silent') });
    const publish = async (count: number): Promise<void> => {
      for (let n = 0; n < count; n++)
        await bus.publish(
          'memory.change.v1',
          Array.from({ length: 16 }, () => {
            const event = eventOf('o', n);
            return eventText({ ...event, data: { ...event.data, text: randomBytes(45_000).toString('base64') } });
          }),
        );
    };
    const first = startReader(events);
    await publish(46);
    expect(logBytes(events)).toBeGreaterThan(30 * MEBIBYTE);
    first.leave();
    await publish(2);
    expect(logBytes(events)).toBeLessThanOrEqual(LOG_LIMIT_BYTES);
    const second = startReader(events);
    await publish(46);
    second.leave();
    await bus.removeExpired!(0, signal);
    expect(logBytes(events)).toBe(0);
    await bus.close();
  });
});
