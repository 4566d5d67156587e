import { join } from 'node:path';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { documentVersionsSuite } from './document-versions-suite.ts';

documentVersionsSuite('SQLite', async () => {
  const folder = temporaryFolder();
  return {
    async asRelease(collections, work) {
      const open = await openSqliteStore(join(folder.path, 'a.sqlite'), collections);
      return work(open).finally(() => open.close());
    },
    dispose: async () => folder.remove(),
  };
});
