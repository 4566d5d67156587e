import { jest } from '@jest/globals';
import { callEndpoint } from '../../../src/runtimes/network/call-endpoint.ts';

describe('a call of an endpoint', () => {
  /** The pauses between calls that are all answered with 503 and these headers. */
  async function pausesAfter(headers: Record<string, string>): Promise<number[]> {
    const pauses: number[] = [];
    const call = {
      ...{ whose: 'agent', organizationId: 'o', url: new URL('https://agents.example.com/'), body: '', maxBytes: 1 },
      ...{ headers: () => ({}), retries: 3, mayPass: () => true, usage: { calls: 0 } },
      signal: new AbortController().signal,
    };
    const post = async () => ({ status: 503, headers, body: Buffer.alloc(0) });
    const pause = async (ms: number): Promise<void> => void pauses.push(ms);
    await callEndpoint({ post }, call, pause);
    expect(call.usage.calls).toBe(pauses.length + 1);
    return pauses;
  }
  beforeEach(() => void jest.spyOn(Math, 'random').mockReturnValue(0.5));
  afterEach(() => jest.restoreAllMocks());

  it('a failure that may pass is followed by pauses that grow', async () => {
    expect(await pausesAfter({})).toEqual([200, 400, 800]);
  });

  it('an endpoint that says when to come again is called again then', async () => {
    expect(await pausesAfter({ 'retry-after': '7' })).toEqual([7_000, 7_000, 7_000]);
  });
});
