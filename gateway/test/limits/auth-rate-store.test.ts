import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { closedInTheEnd } from 'platform/service/test-end.ts';
import { startProgram } from 'platform/service/testing.ts';
import { systemClock } from 'platform/core/clock.ts';
import { program } from '../../../services/auth/src/service.ts';
import { openAuthRateStore, type RatesClient } from '../../src/limits/auth-rate-store.ts';
import { windowAt } from '../../src/limits/window.ts';
import { rateStoreSuite } from './rate-store-suite.ts';

let replicas: RatesClient[];
beforeAll(async () => {
  const running = await Promise.all([0, 1].map(() => startProgram(program, {}, systemClock)));
  replicas = running.map((auth) => auth.client(AuthServiceService, 'gateway'));
  for (const auth of running) closedInTheEnd(() => auth.stop());
});
const down: RatesClient = { shareRates: () => Promise.reject(new Error('down')) };

describe('two processes of auth that do not know each other', () => {
  rateStoreSuite(async (id) => openAuthRateStore(id, replicas, () => undefined));

  it('are one store while one of them answers, and another one when it has forgotten', async () => {
    const [first, second] = replicas as [RatesClient, RatesClient];
    const [one, other] = [
      openAuthRateStore('one', [first, down], () => undefined),
      openAuthRateStore('other', [second, first], () => undefined),
    ];
    const { nowMs, epoch } = await one.share(0, []);
    const window = windowAt(nowMs);
    await one.share(window, [{ key: 'k', current: 3, previous: 0 }]);
    expect((await other.share(window, [{ key: 'k', current: 0, previous: 0 }])).others).toEqual([
      { current: 3, previous: 0 },
    ]);
    expect((await one.share(window, [])).epoch).toBe(epoch);
    expect((await openAuthRateStore('one', [second], () => undefined).share(window, [])).epoch).not.toBe(epoch);
    await expect(openAuthRateStore('one', [down], () => undefined).share(window, [])).rejects.toThrow('down');
  });
});
