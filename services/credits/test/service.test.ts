import { join } from 'node:path';
import { DAY_MS } from 'platform/core/clock.ts';
import type { CloudEvent, Topic } from 'platform/events/bus.ts';
import { openSqliteBus } from 'platform/events/sqlite/bus.ts';
import { newId } from 'platform/core/ids.ts';
import { startCredits } from './fixture.ts';

describe('the credits service', () => {
  let nowMs = Date.now();
  const credits = startCredits({ now: () => nowMs });

  /** The organization's events on a topic; waits until there are `count`. */
  async function eventsOf(topic: Topic, organizationId: string, count: number): Promise<CloudEvent[]> {
    const bus = await openSqliteBus(join(credits.running.folder, 'events.db'), { pollMs: 5 });
    const events: CloudEvent[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    await bus.subscribe(
      topic,
      newId(),
      async (event) => {
        if (event.organizationid === organizationId && events.push(event) === count) resolve();
      },
      { maxAttempts: 1, retryDelayMs: 0 },
    );
    await promise;
    await bus.close();
    return events;
  }

  it('sweeper: expires due reservations in every organization and makes their amounts available again', async () => {
    const all = await Promise.all([1, 2, 3].map(async () => credits.agents(await credits.organizationWith(10))));
    for (const agents of all) for (let i = 0; i < 3; i++) await agents.reserve(newId(), 2, { ttlMs: 1_000 });
    expect(await credits.running.runJob('sweeper')).toEqual({ ran: true, count: 0 });
    nowMs += 1_000;
    expect(await credits.running.runJob('sweeper')).toEqual({ ran: true, count: 9 });
    for (const agents of all)
      expect(await agents.balance()).toMatchObject({ availableMicros: 10, reservedMicros: 0, openReservations: 0 });
  });

  it('relay: publishes every row at once, once and in order, and a grant also as an audit entry with its operator', async () => {
    const organizationId = newId();
    const id = newId();
    await credits.operator(organizationId).grant(id, 10, 'welcome');
    const agents = credits.agents(organizationId);
    for (let i = 0; i < 5; i++) await agents.reserve(newId(), 1);
    // Nothing asks for the relay, and its interval is an hour: a new row starts it.
    const events = await eventsOf('credits.ledger.v1', organizationId, 6);
    expect(events.map((event) => event.sequence)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(new Set(events.map((event) => event.id)).size).toBe(6);
    expect(events[0]).toMatchObject({
      source: '/credits',
      type: 'credits.ledger.row.v1',
      subject: `accounts/${organizationId}`,
      partitionkey: organizationId,
      data: {
        kind: 'GRANT',
        id,
        grantedDeltaMicros: 10,
        availableMicros: 10,
        actor: { kind: 'operator', name: 'test' },
        note: 'welcome',
      },
    });
    const [entry] = await eventsOf('audit.v1', organizationId, 1);
    expect(entry).toMatchObject({
      type: 'audit.entry.v1',
      data: {
        action: 'credits.grant',
        outcome: 'success',
        actor: { kind: 'operator', id: 'test' },
        target: { type: 'grant', id },
        changes: { availableMicros: [0, 10] },
        code: null,
        count: 1,
      },
    });
  });

  it('keeps accounts, reservations and the mark of what was relayed over a restart', async () => {
    const organizationId = await credits.organizationWith(10);
    const id = newId();
    await credits.agents(organizationId).reserve(id, 4);
    await credits.running.runJob('relay');
    await credits.running.restart();
    expect(await credits.running.runJob('relay')).toEqual({ ran: true, count: 0 });
    expect(await credits.agents(organizationId).settle(id, 4)).toMatchObject({ state: 'SETTLED', chargedMicros: 4 });
    expect(await credits.agents(organizationId).balance()).toMatchObject({
      availableMicros: 6,
      spentMicros: 4,
      sequence: 3,
    });
  });

  it('sweeper: deletes ended reservations that have left the retention window, once', async () => {
    const agents = credits.agents(await credits.organizationWith(10));
    const id = newId();
    await agents.reserve(id, 2);
    await agents.settle(id, 2);
    await credits.running.runJob('sweeper');
    nowMs += 31 * DAY_MS;
    expect((await credits.running.runJob('sweeper')).count).toBeGreaterThan(0);
    expect(await credits.running.runJob('sweeper')).toEqual({ ran: true, count: 0 });
  });
});
