import { newId } from 'platform/core/ids.ts';
import { makeLog } from 'platform/core/log.ts';
import { openMongoStore } from 'platform/store/mongo/store.ts';
import { documentVersionsSuite } from './document-versions-suite.ts';

// The stores of all releases stay open, as during a rolling update.
documentVersionsSuite('MongoDB', async () => {
  const url = process.env.MONGODB_URL as string;
  const database = `versions-${newId()}`;
  const open = new Map<unknown, ReturnType<typeof openMongoStore>>();
  return {
    async asRelease(collections, work) {
      const [release] = collections;
      if (!open.has(release))
        open.set(
          release,
          openMongoStore({ url, database, poolMax: 5, timeoutMs: 60_000, log: makeLog('test', 'silent') }, collections),
        );
      return work(await open.get(release)!);
    },
    async dispose() {
      for (const store of open.values()) await (await store).close();
    },
  };
});
