import { join } from 'node:path';
import { isoTime } from 'platform/core/clock.ts';
import { eventText, type CloudEvent, type EventBus } from 'platform/events/bus.ts';
import { openSqliteBus } from 'platform/events/sqlite/bus.ts';
import { newId } from 'platform/core/ids.ts';
import { makeLog } from 'platform/core/log.ts';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import type { OpenStore } from 'platform/store/store.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { AUDIT_GROUP } from '../src/audit/consume-audit.ts';
import { AUDIT_ENTRIES, AUDIT_HEADS, openAuditEntries, type AuditEntries } from '../src/audit/store.ts';
import { deadLettersJob } from '../src/jobs/dead-letters.ts';

describe('the job dead-letters', () => {
  const folder = temporaryFolder();
  const organizationId = newId();
  let opened: OpenStore;
  let auditEntries: AuditEntries;
  let bus: EventBus;
  beforeAll(async () => {
    opened = await openSqliteStore(join(folder.path, 'auth.db'), [AUDIT_ENTRIES, AUDIT_HEADS]);
    auditEntries = openAuditEntries(opened.store, opened.platformStore);
    bus = await openSqliteBus(join(folder.path, 'events.db'), { pollMs: 10, log: makeLog('test', 'silent') });
  });
  afterAll(async () => {
    await bus.close();
    await opened.close();
    folder.remove();
  });

  function auditEvent(action: string | undefined): CloudEvent {
    const id = newId();
    const data = {
      action,
      outcome: 'success',
      actor: { kind: 'user', id: 'u1', name: 'ada', via: '' },
      target: null,
      code: null,
      count: 1,
      requestId: 'r1',
    };
    return {
      specversion: '1.0',
      id,
      source: '/agents',
      type: 'audit.entry.v1',
      subject: `entries/${id}`,
      time: isoTime(Date.now()),
      datacontenttype: 'application/json',
      organizationid: organizationId,
      partitionkey: organizationId,
      sequence: 1,
      data,
    };
  }
  /** Publishes events and makes a consumer give up on them. */
  async function makeDeadLetters(...events: CloudEvent[]): Promise<void> {
    const allFailed = Promise.withResolvers<void>();
    let failures = 0;
    const subscription = await bus.subscribe(
      'audit.v1',
      AUDIT_GROUP,
      async () => {
        if (++failures === events.length) allFailed.resolve();
        throw new Error('the store is unavailable');
      },
      { maxAttempts: 1, retryDelayMs: 1 },
    );
    await bus.publish('audit.v1', events.map(eventText));
    await allFailed.promise;
    await subscription.stop();
  }
  const run = (signal = new AbortController().signal, entries = auditEntries): Promise<number> =>
    deadLettersJob({ bus, auditEntries: entries }).run(signal);
  const stored = async (): Promise<string[]> =>
    (await auditEntries.list(organizationId, { limit: 100 })).map(({ action }) => action).reverse();

  it('stores the dead letters once and returns their number', async () => {
    await makeDeadLetters(auditEvent('agent.run'), auditEvent('agent.apply'));
    expect(await stored()).toEqual([]);
    expect(await run()).toBe(2);
    expect(await run()).toBe(0);
    expect(await stored()).toEqual(['agent.run', 'agent.apply']);
  });

  it('keeps a malformed event as a dead letter, and stores those after it', async () => {
    await makeDeadLetters(auditEvent('agent.publish'), auditEvent(undefined), auditEvent('agent.retire'));
    expect([await run(), await run()]).toEqual([2, 0]);
    expect(await stored()).toEqual(['agent.run', 'agent.apply', 'agent.publish', 'agent.retire']);
  });

  it('names the event that fails again, and keeps it and the later ones as dead letters', async () => {
    const [failing, later] = [auditEvent('agent.run'), auditEvent('agent.apply')];
    await makeDeadLetters(failing, later);
    const full = { ...auditEntries, append: () => Promise.reject(new Error('disk full')) };
    for (let round = 0; round < 2; round++)
      await expect(run(undefined, full)).rejects.toThrow(
        `The audit event ${failing.id} failed again (Error: disk full)`,
      );
    expect(await run()).toBe(2);
  });

  it('stores nothing when the process is stopping', async () => {
    await expect(run(AbortSignal.abort(new Error('the process stops')))).rejects.toThrow('the process stops');
  });
});
