import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Policy } from '../../src/http/exchange.ts';
import { hostPipeline, type PolicyName } from '../../src/host/plugin.ts';

// Mounts the pipeline as the gateway does, and prints the folders of the packages in node_modules that were loaded. A
// process of its own, because jest loads modules by itself.
const ROOT = join(import.meta.dirname, '../../..');
const pass: Policy = (_req, _res, next) => next();
const names: readonly PolicyName[] = ['find-route', 'authenticate', 'admit', 'read-body', 'call-service'];
await hostPipeline(
  Object.fromEntries(names.map((name) => [name, pass])) as Record<PolicyName, Policy>,
  async () => undefined,
);
const folders = Object.keys(createRequire(import.meta.url).cache).map(
  (file) => /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1] ?? '',
);
process.stdout.write(JSON.stringify([...new Set(folders)].map((folder) => folder.slice(ROOT.length + 1))));
process.exit();
