import { eventText, type CloudEvent, type EventBus } from 'platform/events/bus.ts';
import { openSqliteBus } from 'platform/events/sqlite/bus.ts';
import { makeLog } from 'platform/core/log.ts';
import { setTimeout as delay } from 'node:timers/promises';
import { eventOf } from './event-of.ts';

/**
 * A process to kill: `bus-child.ts <engine> <address> publish <organization> | consume <group> | die <group>
 * <organization>`. It prints a line for each event whose publish was acknowledged or that its handler received: the
 * time by the machine's monotonic clock and the event's id.
 */
const engines: Record<string, (address: string) => Promise<EventBus>> = {
  sqlite: (file) => openSqliteBus(file, { leaseMs: 300, pollMs: 20 }),
  kafka: async (options) =>
    (await import('platform/events/kafka/bus.ts')).openKafkaBus({
      ...JSON.parse(options),
      clientId: 'child',
      log: makeLog('child', 'silent'),
    }),
};
const [engine, address, role, name, organization] = process.argv.slice(2) as [string, string, string, string, string?];
const bus = await engines[engine]!(address);
// Returns when the line is in the pipe: node writes to pipes synchronously.
const print = (event: CloudEvent): boolean =>
  process.stdout.write(`${String(process.hrtime.bigint()).padStart(20, '0')} ${event.id}\n`);

if (role === 'publish') {
  for (let n = 0; ; n++) {
    const event = eventOf(name, n);
    await bus.publish('audit.v1', [eventText(event)]);
    print(event);
    await delay(1);
  }
}
await bus.subscribe(
  'audit.v1',
  name,
  async (event) => {
    if (organization !== undefined && event.organizationid !== organization) return;
    print(event);
    if (role === 'die') process.kill(process.pid, 'SIGKILL');
  },
  { maxAttempts: 5, retryDelayMs: 10 },
);
