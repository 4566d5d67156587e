import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { layOutKeys } from 'platform/service/testing.ts';
import { openSharedStackHost } from './shared-stack-host.ts';
import { requireReachableEngines } from './require-reachable-engines.ts';

const ENGINE_URLS = ['MONGODB_URL', 'REDIS_URL', 'KAFKA_BROKERS'];

/**
 * Runs before the first test. `npm test` runs on the embedded engines, also in a shell where the URLs of servers are
 * set for test:engines.
 */
export default async function setUp(): Promise<void> {
  if (process.env.TEST_ENGINES) await requireReachableEngines();
  else for (const name of ENGINE_URLS) delete process.env[name];
  const keys = mkdtempSync(join(tmpdir(), 'aks-keys-'));
  await layOutKeys(keys);
  process.env.TEST_KEYS = keys;
  globalThis.sharedStackHost = await openSharedStackHost();
}
