import { MemoryType } from 'proto/memory/v1/memory.ts';
import { eventually } from 'platform/service/test-end.ts';
import { serverToken } from 'platform/service/testing.ts';
import { startGatewayFixture, type GatewayFixture } from '../fixture.ts';

const LARGE_BYTES = 200_000;
const BURST = 40;
/** The calls of the service that are under way; each one ends when all requests that may run have arrived. */
const calls = { underWay: 0, mostAtOnce: 0, all: 0 };
let fixture: GatewayFixture;
beforeAll(async () => {
  fixture = await startGatewayFixture({
    // tokens named "<token>", or "<user>~<organization>"
    decide({ bearer }) {
      const [subject, organizationId = 'organization-1'] = bearer.split('~') as [string, string?];
      return { ...serverToken(organizationId), subject };
    },
    memory: {
      getMemoryType: async ({ id }) => {
        calls.all++;
        calls.mostAtOnce = Math.max(calls.mostAtOnce, ++calls.underWay);
        for (let turn = 0; turn < (id === 'large' ? 5 : 100); turn++) await new Promise(setImmediate);
        calls.underWay--;
        const description = 'x'.repeat(id === 'large' ? LARGE_BYTES : 0);
        return { memoryType: { ...MemoryType.decode(new Uint8Array()), id, description } };
      },
    },
  });
});
afterAll(() => fixture.stop());
beforeEach(() => {
  Object.assign(calls, { underWay: 0, mostAtOnce: 0, all: 0 });
});
const get = (id: string, token: string) => fixture.request(`/api/memory/types/${id}`, { token });
/** With another token if a machine that stalls let the deadline of a call pass. Only the last attempt is counted. */
async function burst(id: string, token: string, attempts = 5): Promise<number[]> {
  await eventually(() => calls.underWay === 0);
  Object.assign(calls, { mostAtOnce: 0, all: 0 });
  const statuses = await Promise.all(Array.from({ length: BURST }, async () => (await get(id, token)).status));
  return statuses.includes(503) && attempts > 1 ? burst(id, `${token}-again`, attempts - 1) : statuses;
}

it('what a user reads in one organization says nothing of what the same user reads in another one', async () => {
  for (const organization of ['one', 'other', 'other']) await get('large', `ada~${organization}`);
  // the first call in each is repeated, because its reply is larger than expected
  expect(calls.all).toBe(5);
});

describe('reads at once, of which it is not known how large their replies are', () => {
  it('are made one after the other', async () => {
    expect(new Set(await burst('large', 'new'))).toEqual(new Set([200]));
    expect(calls.mostAtOnce).toBe(1);
    // only the first one has to be repeated
    expect(calls.all).toBe(BURST + 1);
  });
  it('are made one after the other, too, when small replies follow a large one', async () => {
    await get('large', 'was-large');
    for (let small = 0; small < 30; small++) await get('small', 'was-large');
    await burst('large', 'was-large');
    expect([calls.mostAtOnce, calls.all]).toEqual([1, BURST + 1]);
  });
  it('of a new token soon run side by side, when their replies are small', async () => {
    expect(new Set(await burst('small', 'small'))).toEqual(new Set([200]));
    expect(new Set(await burst('small', 'small'))).toEqual(new Set([200]));
    expect(calls.mostAtOnce).toBeGreaterThan(BURST / 4);
  });
  it('do not let the reads of another token wait', async () => {
    const large = burst('large', 'greedy');
    expect((await get('small', 'neighbour')).status).toBe(200);
    expect(calls.all).toBeLessThan(BURST / 2);
    await large;
  });
});
