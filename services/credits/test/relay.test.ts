import { StatementSync } from 'node:sqlite';
import { newId } from 'platform/core/ids.ts';
import type { CloudEvent, EventText, Topic } from 'platform/events/bus.ts';
import { relayJob } from '../src/jobs/relay.ts';
import { withLedger } from './ledger-harness.ts';
import { sqliteHarness } from './sqlite-harness.ts';

/** Counts the commits of all SQLite files: each is one run of a prepared COMMIT. */
function countCommits() {
  const { prototype } = StatementSync;
  const { run } = prototype;
  let count = 0;
  prototype.run = new Proxy(run, {
    apply(target, statement: StatementSync, values) {
      if (statement.sourceSQL === 'COMMIT') count++;
      return Reflect.apply(target, statement, values);
    },
  });
  return { count: () => count, stop: () => void Object.assign(prototype, { run }) };
}

describe('relay-ledger', () => {
  const context = withLedger(sqliteHarness);
  const config = { RELAY_INTERVAL_MS: 1_000 };
  const never = new AbortController().signal;

  /** A bus that records the events of this test's organization. While it is down it accepts nothing. */
  function recordingBus() {
    const accepted: { topic: Topic; event: CloudEvent }[] = [];
    return {
      accepted,
      down: false,
      async publish(topic: Topic, events: readonly EventText[]) {
        if (this.down) throw new Error('the bus is down');
        accepted.push(
          ...events
            .filter(({ partitionKey }) => partitionKey === context.organization.organizationId)
            .map(({ text }) => ({ topic, event: JSON.parse(text) as CloudEvent })),
        );
      },
    };
  }

  it('publishes a row again with the same event id after it was killed before it acknowledged the row', async () => {
    const { ledger, platformLedger } = context.harness.opened;
    const bus = recordingBus();
    const dying = { ...ledger, acknowledge: () => Promise.reject(new Error('killed')) };
    await expect(relayJob({ ledger: dying, platformLedger, bus, config }).run(never)).rejects.toThrow('killed');
    const first = bus.accepted.splice(0);
    expect(first.map(({ topic }) => topic)).toEqual(['credits.ledger.v1', 'audit.v1']);
    await context.harness.reopen();
    await relayJob({ ...context.harness.opened, bus, config }).run(never);
    expect(bus.accepted).toEqual(first);
  });

  it.each<Topic>(['credits.ledger.v1', 'audit.v1'])(
    'acknowledges no row of which the bus has not taken what belongs to %s',
    async (refused) => {
      const bus = recordingBus();
      const publish: typeof bus.publish = (topic, events) =>
        topic === refused ? Promise.reject(new Error('refused')) : bus.publish(topic, events);
      const job = (using: Pick<typeof bus, 'publish'>) =>
        relayJob({ ...context.harness.opened, bus: using, config }).run(never);
      await expect(job({ publish })).rejects.toThrow('refused');
      bus.accepted.length = 0;
      await job(bus);
      expect(bus.accepted.map(({ topic }) => topic)).toEqual(['credits.ledger.v1', 'audit.v1']);
    },
  );

  it('relays the rows of all organizations with one publish for each topic and one commit', async () => {
    const { ledger } = context.harness.opened;
    const organizations = Array.from({ length: 40 }, () => newId());
    const author = { actor: { kind: 'operator', id: 'o', name: 'o', via: '' }, requestId: 'r' };
    for (const organizationId of organizations)
      await ledger.grant(organizationId, { id: newId(), amountMicros: 5, note: '' }, author);
    const published: [Topic, number][] = [];
    const bus = {
      publish: async (topic: Topic, events: readonly EventText[]) => void published.push([topic, events.length]),
    };
    const commits = countCommits();
    try {
      await relayJob({ ...context.harness.opened, bus, config }).run(never);
      expect(commits.count()).toBe(1);
    } finally {
      commits.stop();
    }
    // With the organization of this test and its grant.
    expect(published).toEqual([
      ['credits.ledger.v1', 41],
      ['audit.v1', 41],
    ]);
  });

  it('keeps rows while the bus is down, and publishes them in order when it is up again', async () => {
    const bus = recordingBus();
    const job = relayJob({ ...context.harness.opened, bus, config });
    await Promise.all(
      Array.from({ length: 450 }, () => context.organization.reserve(context.organization.freshId(), 0)),
    );
    bus.down = true;
    await expect(job.run(never)).rejects.toThrow('down');
    bus.down = false;
    await job.run(never);
    const rows = bus.accepted.filter(({ topic }) => topic === 'credits.ledger.v1');
    expect(rows.map(({ event }) => event.sequence)).toEqual(Array.from({ length: 451 }, (_, i) => i + 1));
    expect(new Set(bus.accepted.map(({ event }) => event.id)).size).toBe(452);
  });
});
