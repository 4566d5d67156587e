import { newId } from 'platform/core/ids.ts';
import { eventually } from 'platform/service/test-end.ts';
import { openRedisRateStore } from '../../src/limits/redis-rate-store.ts';
import { rateStoreSuite } from './rate-store-suite.ts';

const keyPrefix = `t${newId()}`;

describe('Redis', () => {
  rateStoreSuite(async (id) => {
    const store = openRedisRateStore(id, { url: process.env.REDIS_URL as string, keyPrefix, timeoutMs: 30_000 });
    // the connection is being opened
    await eventually(() => store.share(0, []).catch(() => undefined));
    return store;
  });

  it('that does not answer rejects a share, which is not repeated', async () => {
    const store = openRedisRateStore('one', { url: 'redis://127.0.0.1:1', keyPrefix, timeoutMs: 100 });
    await expect(store.share(1, [])).rejects.toThrow();
    store.close();
  });
});
