import { OUTBOX } from 'platform/events/outbox.ts';
import { relayJob } from 'platform/events/relay.ts';
import { openSqliteBus } from 'platform/events/sqlite/bus.ts';
import { makeLog } from 'platform/core/log.ts';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';

// A relay that is killed after the bus acknowledged and before it removes the events from the outbox.
// Arguments: <store file> <event file>
const [storeFile, eventFile] = process.argv.slice(2) as [string, string];
const { platformStore } = await openSqliteStore(storeFile, [OUTBOX]);
const bus = await openSqliteBus(eventFile);
const relay = relayJob({
  platformStore,
  intervalMs: 1,
  log: makeLog('test', 'silent'),
  bus: {
    async publish(topic, events) {
      await bus.publish(topic, events);
      process.kill(process.pid, 'SIGKILL');
    },
  },
});
await relay.run(new AbortController().signal);
