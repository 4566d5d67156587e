import { readConfig } from 'platform/core/config.ts';
import { engineConfig } from 'platform/service/backends.ts';
import { allMethodOptions } from 'platform/rpc/method-options.ts';
import { config as creditsConfig } from '../../../services/credits/src/config.ts';

/** On the way, and in a process that is busy. */
const MARGIN_MS = 2_000;

it('a caller waits longer than two steps on an engine may take, where it could not tell what was done', () => {
  const { MONGODB_TIMEOUT_MS, REDIS_TIMEOUT_MS } = readConfig({ ...engineConfig, ...creditsConfig }, {});
  const stepsMs = 2 * Math.max(MONGODB_TIMEOUT_MS, REDIS_TIMEOUT_MS);
  const writes = [...allMethodOptions()].filter(([, { repeatable }]) => !repeatable);
  expect(writes.length).toBeGreaterThan(10);
  expect(writes.filter(([, { deadlineMs }]) => deadlineMs < stepsMs + MARGIN_MS).map(([path]) => path)).toEqual([]);
});
