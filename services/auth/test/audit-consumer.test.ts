import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import fc from 'fast-check';
import type { ListAuditEntriesRequest } from 'proto/auth/v1/auth.ts';
import { isoTime } from 'platform/core/clock.ts';
import { RejectedEventError, eventText, type CloudEvent } from 'platform/events/bus.ts';
import type { AuditChanges } from 'platform/events/audit-changes.ts';
import { auditEntryOp } from 'platform/events/outbox.ts';
import { openSqliteBus } from 'platform/events/sqlite/bus.ts';
import { newId } from 'platform/core/ids.ts';
import { makeLog } from 'platform/core/log.ts';
import type { OpenStore } from 'platform/store/store.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { openTestStore } from '../../../test/support/shared-engines.ts';
import { ACTIONS_OF } from '../src/audit/audit-event.ts';
import { checkChain, START } from '../src/audit/chain.ts';
import { requireFilter } from '../src/audit/filter.ts';
import { consumeAudit, storeAuditEvents } from '../src/audit/consume-audit.ts';
import {
  AUDIT_ENTRIES,
  AUDIT_HEADS,
  openAuditEntries,
  type AuditEntries,
  type AuditEntryRecord,
} from '../src/audit/store.ts';

const folder = temporaryFolder();
let opened: OpenStore;
let auditEntries: AuditEntries;
beforeAll(async () => {
  opened = await openTestStore(join(folder.path, 'auth.db'), [AUDIT_ENTRIES, AUDIT_HEADS]);
  auditEntries = openAuditEntries(opened.store, opened.platformStore);
});
afterAll(async () => {
  await opened.close();
  folder.remove();
});

/** Newest first: the order of ids is that in which the events were made. */
const byId = (entries: readonly AuditEntryRecord[]): AuditEntryRecord[] =>
  entries.toSorted((a, b) => (a._id < b._id ? 1 : -1));

const actor = { kind: 'user', id: 'u1', name: 'ada', via: '' };

/** An audit event, as the outbox of a service holds it. */
function auditEvent(
  organizationId: string,
  given: { target?: { type: string; id: string }; changes?: AuditChanges; code?: string; count?: number },
): CloudEvent {
  const op = auditEntryOp({
    source: '/memory',
    organizationId,
    action: 'memory_type.create',
    outcome: 'success',
    actor,
    requestId: 'r1',
    time: isoTime(Date.now()),
    ...given,
  });
  if (op.kind !== 'insert') throw new Error('auditEntryOp must be an insert');
  return JSON.parse((op.document as unknown as { event: string }).event) as CloudEvent;
}

const withData = (event: CloudEvent, members: object): object => ({ ...event, data: { ...event.data, ...members } });

describe('the consumer of audit events', () => {
  it('stores each event once, in whatever order and however often it is delivered', async () => {
    const delivery = fc.array(
      fc.record({
        ...{ repeats: fc.integer({ min: 1, max: 3 }), targeted: fc.boolean(), rank: fc.nat() },
        // Also what no engine stores as it is: half of a surrogate pair.
        name: fc.oneof(fc.string({ unit: 'binary' }), fc.constant('\ud800')),
      }),
      { minLength: 1, maxLength: 20 },
    );
    await fc.assert(
      fc.asyncProperty(delivery, async (plan) => {
        const organizationId = newId();
        const events = plan.map(({ targeted, name }, index) =>
          auditEvent(
            organizationId,
            targeted
              ? { target: { type: 'memory_type', id: `m${index}` }, changes: { name: [null, name] } }
              : { code: 'forbidden', count: index + 1 },
          ),
        );
        const deliveries = events.flatMap((event, index) =>
          Array.from({ length: plan[index]!.repeats }, (_, n) => ({
            event,
            rank: (plan[index]!.rank * (n + 7)) % 101,
          })),
        );
        deliveries.sort((a, b) => a.rank - b.rank);
        const pieces: CloudEvent[][] = [];
        while (deliveries.length > 0) pieces.push(deliveries.splice(0, 5).map(({ event }) => event));
        // Two replicas, one of which lost its lease.
        for (; pieces.length > 0;)
          await Promise.all(pieces.splice(0, 2).map((piece) => storeAuditEvents({ auditEntries }, piece)));
        const trail = byId(await auditEntries.list(organizationId, { limit: 100 }));
        expect(trail.map(({ _id }) => _id)).toEqual(events.map(({ id }) => id).reverse());
        const chain = await auditEntries.chainAfter(organizationId, 0, 100);
        const head = await auditEntries.head(organizationId);
        expect(checkChain(START, chain)).toEqual({ faults: [], last: { sequence: head!.sequence, hash: head!.hash } });
        expect(chain.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index + 1));
        expect(trail.map(({ targetId, code, count }) => ({ targetId, code, count })).reverse()).toEqual(
          plan.map(({ targeted }, index) =>
            targeted
              ? { targetId: `m${index}`, code: null, count: 1 }
              : { targetId: null, code: 'forbidden', count: index + 1 },
          ),
        );
      }),
      { numRuns: 25 },
    );
  });

  it('takes exactly the actions that docs/events.md lists for each service', () => {
    const catalogue = readFileSync(join(import.meta.dirname, '../../../docs/events.md'), 'utf8');
    const listed = [...catalogue.matchAll(/^\| (`[a-z_]+\.[a-z_]+`.*) \| ([a-z, ]+) \|$/gm)].flatMap(
      ([, actions, by]) =>
        by!
          .split(', ')
          .flatMap((service) =>
            [...actions!.matchAll(/`([a-z_]+\.[a-z_]+)`/g)].map(([, action]) => `/${service} ${action}`),
          ),
    );
    expect(
      [...ACTIONS_OF].flatMap(([source, actions]) => actions.map((action) => `${source} ${action}`)).sort(),
    ).toEqual(listed.sort());
  });

  it.each<[string, (event: CloudEvent) => object]>([
    ['of a service that writes no such entries', (event) => ({ ...event, source: '/credits' })],
    ['of a process that is no service', (event) => ({ ...event, source: '/gateway' })],
    ['of a source that every object has', (event) => ({ ...event, source: 'constructor' })],
    ['of another type', (event) => ({ ...event, type: 'memory.type.created.v1' })],
    ['for two organizations', (event) => ({ ...event, partitionkey: newId() })],
    ['for no organization', (event) => ({ ...event, organizationid: '', partitionkey: '' })],
    ['whose id is no UUID', (event) => ({ ...event, id: 'zzzz' })],
    ['whose time would never end its retention', (event) => ({ ...event, time: 'today' })],
    ['that reports a denial as a change', (event) => withData(event, { outcome: 'denied' })],
    ['of an unknown action', (event) => withData(event, { action: 'memory_type.read' })],
    ['without an action', (event) => withData(event, { action: undefined })],
    ['without an actor', (event) => withData(event, { actor: null })],
    ['with an actor of an unknown kind', (event) => withData(event, { actor: { ...actor, kind: 'root' } })],
    ['with a name that is not text', (event) => withData(event, { actor: { ...actor, name: {} } })],
    ['with half a target', (event) => withData(event, { target: { type: 'memory_type' } })],
    ['whose count no list can return', (event) => withData(event, { count: 2 ** 31 })],
    ['whose count is not a number', (event) => withData(event, { count: '1' })],
    ['whose changes are no pairs', (event) => withData(event, { changes: { roles: ['admin'] } })],
    ['whose changes are objects', (event) => withData(event, { changes: { roles: [{}, {}] } })],
    ['whose changes are too long', (event) => withData(event, { changes: { name: ['', 'n'.repeat(40_000)] } })],
    ['without data', (event) => ({ ...event, data: undefined })],
  ])('rejects an event %s', async (_what, change) => {
    const event = change(auditEvent(newId(), {})) as CloudEvent;
    await expect(storeAuditEvents({ auditEntries }, [event])).rejects.toThrow(RejectedEventError);
  });

  it('rejects any other JSON', async () => {
    await fc.assert(
      fc.asyncProperty(fc.dictionary(fc.string(), fc.jsonValue()), fc.jsonValue(), async (members, data) => {
        const event = { ...auditEvent(newId(), {}), ...members, data } as unknown as CloudEvent;
        await expect(storeAuditEvents({ auditEntries }, [event])).rejects.toThrow(RejectedEventError);
      }),
    );
  });

  it('stores many entries with one batch, and after a failure one by one each exactly once', async () => {
    const bus = await openSqliteBus(join(folder.path, 'many.db'), { pollMs: 10, log: makeLog('test', 'silent') });
    const organizations = [newId(), newId(), newId()];
    const events = Array.from({ length: 300 }, (_, n) => auditEvent(organizations[n % 3]!, { count: n + 1 }));
    const batches: number[] = [];
    const last = events.at(-1)!.id;
    let mayBeMany = true;
    const consumeAll = async (): Promise<void> => {
      const finished = Promise.withResolvers<void>();
      const append: AuditEntries['append'] = async (entries) => {
        if (entries.length > 1 && !mayBeMany) throw new Error('the batch is too large');
        await auditEntries.append(entries);
        batches.push(entries.length);
        if (entries.at(-1)!._id === last) finished.resolve();
      };
      await bus.publish('audit.v1', events.map(eventText));
      const subscription = await consumeAudit({ auditEntries: { ...auditEntries, append } }, bus);
      await finished.promise;
      await subscription.stop();
    };
    await consumeAll();
    await consumeAll();
    expect([batches.reduce((sum, size) => sum + size, 0), batches.length <= 4]).toEqual([600, true]);
    mayBeMany = false;
    await consumeAll();
    expect(batches.slice(-300)).toEqual(events.map(() => 1));
    await bus.close();
    for (const [n, organizationId] of organizations.entries()) {
      const trail = byId(await auditEntries.list(organizationId, { limit: 200 }));
      expect(trail.map(({ _id }) => _id).reverse()).toEqual(events.filter((_, i) => i % 3 === n).map(({ id }) => id));
    }
  });

  it('goes on to the next event when one is malformed, and keeps the malformed one as a dead letter', async () => {
    const file = join(folder.path, 'events.db');
    const bus = await openSqliteBus(file, { pollMs: 10, log: makeLog('test', 'silent') });
    const [organizationId, stored] = [newId(), Promise.withResolvers<void>()];
    const append: AuditEntries['append'] = (entries) => auditEntries.append(entries).finally(stored.resolve);
    const malformed = { ...auditEvent(organizationId, {}), source: '/gateway' };
    await bus.publish('audit.v1', [malformed, auditEvent(organizationId, {})].map(eventText));
    const subscription = await consumeAudit({ auditEntries: { ...auditEntries, append } }, bus);
    await stored.promise;
    await subscription.stop();
    await bus.close();
    using db = new DatabaseSync(file, { readOnly: true });
    const letters = db.prepare('SELECT event, error FROM dead_letter').all();
    expect(letters.map(({ event }) => JSON.parse(String(event)))).toEqual([malformed]);
    expect(letters[0]!.error).toMatch(/action$/);
    expect(await auditEntries.list(organizationId, { limit: 10 })).toHaveLength(1);
  });

  it('finds the entries by each filter and in pages, and cuts the beginning of a chain, on every engine', async () => {
    const organizationId = newId();
    const [token, user] = [newId(), newId()];
    const times = [1, 2, 3, 4].map((day) => `2026-01-0${day}T00:00:00.000Z`);
    const entryOf = (n: number, said: Partial<AuditEntryRecord>): AuditEntryRecord => ({
      ...{ _id: newId(), organizationId, at: times[n]!, action: 'agent.run', outcome: 'success', code: null, count: 1 },
      ...{ actorKind: 'user', actorId: user, actorName: 'ada', actorVia: '', targetType: 'agent', targetId: 'a' },
      ...{ requestId: 'r', ...said },
    });
    const entries = [
      entryOf(0, { action: 'agent.publish' }),
      entryOf(1, { actorId: token }),
      entryOf(2, { outcome: 'failure', code: 'AGENT_FAILED', actorId: token }),
      entryOf(3, { action: 'request.refused', outcome: 'denied', code: 'FORBIDDEN', targetType: null, targetId: null }),
    ];
    await auditEntries.append(entries);
    const found = async (asked: Partial<ListAuditEntriesRequest>, actors?: string[], before?: AuditEntryRecord) => {
      const filter = requireFilter({ action: '', ...asked }, actors);
      const list = await auditEntries.list(organizationId, { ...filter, before, limit: 10 });
      return list.map(({ _id }) => entries.findIndex((entry) => entry._id === _id));
    };
    expect(await found({})).toEqual([3, 2, 1, 0]);
    expect(await found({}, undefined, entries[2])).toEqual([1, 0]);
    expect(await found({ action: 'agent.run' })).toEqual([2, 1]);
    expect(await found({ outcome: 'success' })).toEqual([1, 0]);
    expect(await found({ outcome: 'failure' })).toEqual([2]);
    expect(await found({ outcome: 'denied' })).toEqual([3]);
    expect(await found({}, [token])).toEqual([2, 1]);
    expect(await found({}, [token, user])).toEqual([3, 2, 1, 0]);
    expect(await found({}, [token, user], entries[3])).toEqual([2, 1, 0]);
    expect(await found({ resource: { type: 'agent', id: 'a' } })).toEqual([2, 1, 0]);
    expect(await found({ since: times[1]!, until: times[3]! })).toEqual([2, 1]);
    expect(await found({ action: 'agent.run', since: times[2]! }, [token])).toEqual([2]);

    expect(await auditEntries.countUnchained(organizationId)).toBe(0);
    expect(await auditEntries.cutChain(organizationId, times[2]!, 10)).toBe(2);
    expect(await auditEntries.cutChain(organizationId, times[2]!, 10)).toBe(0);
    expect(await auditEntries.head(organizationId)).toMatchObject({ sequence: 4, startSequence: 2 });
    expect((await auditEntries.chainAfter(organizationId, 2, 10)).map(({ _id }) => _id)).toEqual(
      entries.slice(2).map(({ _id }) => _id),
    );
  });
});
