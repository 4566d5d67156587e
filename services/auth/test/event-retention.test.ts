import { DatabaseSync } from 'node:sqlite';
import { join } from 'node:path';
import { DAY_MS } from 'platform/core/clock.ts';
import { startAuth, until, type AuthFixture } from './fixture.ts';

describe('the job event-retention', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());

  const inFile = (sql: string): number => {
    using db = new DatabaseSync(join(fixture.running.folder, 'events.db'), { readOnly: true, timeout: 5_000 });
    return db.prepare(sql).get()!.n as number;
  };
  const eventsInFile = () => inFile('SELECT coalesce(sum(count), 0) AS n FROM block');
  /** An event is marked as handled a moment after its entry is in the audit trail. */
  const unhandled = async () =>
    inFile(
      'SELECT count(*) AS n FROM block, progress WHERE block.topic = progress.topic AND block.last > progress.seq',
    );

  it('removes audit events from the event file after 30 days; the audit trail keeps their entries', async () => {
    const organizationId = await fixture.createOrganization();
    await fixture.auditTrail(organizationId, (actions) => actions.length === 1);
    await until(unhandled, (count) => count === 0);
    const published = eventsInFile();
    expect(published).toBeGreaterThan(0);
    fixture.clock.advance(29 * DAY_MS);
    expect(await fixture.running.runJob('event-retention')).toEqual({ ran: true, count: 0 });
    fixture.clock.advance(2 * DAY_MS);
    expect(await fixture.running.runJob('event-retention')).toEqual({ ran: true, count: published });
    expect(eventsInFile()).toBe(0);
    expect(await fixture.auditTrail(organizationId)).toHaveLength(1);
  });
});
