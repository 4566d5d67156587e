import { startAuth, type AuthFixture } from './fixture.ts';

describe('ShareRates', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());

  const share = (gatewayId: string, window: number, current: number, previous = 0) =>
    fixture.gateway.shareRates({ gatewayId, window, counts: [{ key: 'k', current, previous }] }, fixture.asGateway());

  it('answers with what the other gateways have told of the same keys, and how many gateways live', async () => {
    expect(await share('a', 7, 5)).toMatchObject({ gateways: 1, others: [{ key: 'k', current: 0, previous: 0 }] });
    expect(await share('b', 7, 3, 2)).toMatchObject({ gateways: 2, others: [{ current: 5, previous: 0 }] });
    expect(await share('a', 8, 1, 6)).toMatchObject({ others: [{ current: 0, previous: 3 }] });
  });

  it('forgets a gateway that has not called for 5 s, and counts of windows that have passed', async () => {
    fixture.clock.advance(5_001);
    expect(await share('c', 10, 1)).toMatchObject({ gateways: 1, others: [{ current: 0, previous: 0 }] });
  });

  it('has another epoch after each start', async () => {
    const { epoch } = await share('a', 20, 0);
    expect((await share('a', 20, 0)).epoch).toBe(epoch);
    await fixture.restart();
    expect((await share('a', 20, 0)).epoch).not.toBe(epoch);
  });
});
