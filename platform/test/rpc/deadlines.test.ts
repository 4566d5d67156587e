import { readConfig } from 'platform/core/config.ts';
import { engineConfig } from 'platform/service/backends.ts';
import { allMethodOptions } from 'platform/rpc/method-options.ts';
import { config as creditsConfig } from '../../../services/credits/src/config.ts';

/** For the network and for a busy process. */
const MARGIN_MS = 2_000;

it('the deadline of a method that is not repeatable is longer than two operations on an engine may take', () => {
  const { MONGODB_TIMEOUT_MS, REDIS_TIMEOUT_MS } = readConfig({ ...engineConfig, ...creditsConfig }, {});
  const stepsMs = 2 * Math.max(MONGODB_TIMEOUT_MS, REDIS_TIMEOUT_MS);
  const writes = [...allMethodOptions()].filter(([, { repeatable }]) => !repeatable);
  expect(writes.length).toBeGreaterThan(10);
  expect(writes.filter(([, { deadlineMs }]) => deadlineMs < stepsMs + MARGIN_MS).map(([path]) => path)).toEqual([]);
});
