import { newId } from 'platform/core/ids.ts';
import type { RateStore } from '../../src/limits/rate-store.ts';
import { windowAt } from '../../src/limits/window.ts';

/** What every engine of the port RateStore keeps. @param open a store that the gateway with this id uses */
export function rateStoreSuite(open: (gatewayId: string) => Promise<RateStore>): void {
  const key = (): string => `requests:server_token:${newId()}`;
  const none = { current: 0, previous: 0 };

  it('tells each gateway what the others have admitted in the window and in the one before', async () => {
    const [a, b, c] = [newId(), newId(), newId()];
    const [one, two, three] = await Promise.all([open(a), open(b), open(c)]);
    const [first, second] = [key(), key()];
    const window = windowAt((await one.share(0, [])).nowMs);
    expect((await one.share(window, [{ key: first, current: 5, previous: 2 }])).others).toEqual([none]);
    await two.share(window, [{ key: first, current: 7, previous: 0 }]);
    const { others } = await three.share(window, [
      { key: first, current: 1, previous: 0 },
      { key: second, current: 1, previous: 0 },
    ]);
    expect(others).toEqual([{ current: 12, previous: 2 }, none]);
    for (const store of [one, two, three]) store.close();
  });

  it('counts what a gateway tells twice once', async () => {
    const [one, other] = await Promise.all([open(newId()), open(newId())]);
    const window = windowAt((await one.share(0, [])).nowMs);
    const shared = key();
    for (const current of [3, 3, 4]) await one.share(window, [{ key: shared, current, previous: 0 }]);
    const { others } = await other.share(window, [{ key: shared, current: 0, previous: 0 }]);
    expect(others).toEqual([{ current: 4, previous: 0 }]);
    for (const store of [one, other]) store.close();
  });

  it('knows in the next window what was admitted before', async () => {
    const [one, other] = await Promise.all([open(newId()), open(newId())]);
    const window = windowAt((await one.share(0, [])).nowMs);
    const shared = key();
    await one.share(window, [{ key: shared, current: 9, previous: 4 }]);
    const { others } = await other.share(window + 1, [{ key: shared, current: 1, previous: 0 }]);
    expect(others).toEqual([{ current: 0, previous: 9 }]);
    for (const store of [one, other]) store.close();
  });

  it('counts the gateways that live, and tells its time', async () => {
    const [one, other] = await Promise.all([open(newId()), open(newId())]);
    const before = (await one.share(0, [])).gateways;
    const { gateways, nowMs } = await other.share(0, []);
    expect([gateways >= 2, gateways >= before]).toEqual([true, true]);
    expect(Math.abs(nowMs - Date.now())).toBeLessThan(600_000);
    for (const store of [one, other]) store.close();
  });
}
