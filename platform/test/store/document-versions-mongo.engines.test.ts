import { newId } from 'platform/core/ids.ts';
import { makeLog } from 'platform/core/log.ts';
import { openMongoStore } from 'platform/store/mongo/store.ts';
import { shapesSuite } from './document-versions-suite.ts';

// The releases stay open beside each other, as replicas do while one takes the place of the other.
shapesSuite('MongoDB', async () => {
  const url = process.env.MONGODB_URL as string;
  const database = `shapes-${newId()}`;
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
