import { makeIncomingRequests } from 'platform/rpc/incoming-requests.ts';

const frame = (bytes: number, more = false) => ({ id: 1, request: Buffer.alloc(bytes), more, last: false });

it.each([
  ['pieces without end', frame(0, true)],
  ['requests that nobody has consumed', frame(60_000)],
])('a service keeps no more than it said: %s end the call', async (_what, next) => {
  const requests = makeIncomingRequests(() => undefined);
  for (let i = 0; i < 200_000; i++) requests.receive(next);
  const read = async (): Promise<void> => {
    for await (const _one of requests);
  };
  await expect(read()).rejects.toMatchObject({ reason: 'BODY_TOO_LARGE' });
});
