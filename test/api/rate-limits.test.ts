import { request } from '../support/request.ts';
import { startProcess } from '../support/stack-process.ts';
import { startStack, type Stack } from '../support/stack.ts';
import { eventually } from 'platform/service/test-end.ts';

const MAX = 100;
const TYPES = '/api/memory/types';

/** The requests that a token has left, as a reply says. */
const leftIn = (headers: Headers): number => Number(/"token";r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1]);

it('two gateways together admit what a token may, within 10 %, and the audit trail has the refusals', async () => {
  const env = { REQUESTS_PER_MINUTE: String(MAX), DENIALS_INTERVAL_MS: '50' };
  const stack: Stack = await startStack({ env });
  const urls =
    stack.baseUrls.length > 1
      ? stack.baseUrls
      : [stack.baseUrl, `http://${(await startProcess(stack, 'gateway', env)).address}`];
  const [first, second] = urls as [string, string];
  const [tenant, other] = await Promise.all([stack.tenant({ tier: 'starter' }), stack.tenant({ tier: 'starter' })]);
  const send = (url: string, token: string) => request(url, 'GET', TYPES, { token });

  // the gateways know each other when each counts what the other has admitted
  await eventually(async () => {
    const before = leftIn((await send(first, other.token)).headers);
    await send(second, other.token);
    const after = leftIn((await send(first, other.token)).headers);
    return before - after > 1 || before === 0;
  });

  const startedAt = Date.now();
  let admitted = 0;
  let refused = 0;
  while (refused < 2 * MAX) {
    const replies = await Promise.all(urls.flatMap((url) => [1, 2, 3, 4, 5].map(() => send(url, tenant.token))));
    for (const { status } of replies)
      if (status === 200) admitted++;
      else if (status === 429) refused++;
  }
  const minutes = (Date.now() - startedAt) / 60_000;
  expect(admitted).toBeGreaterThanOrEqual(0.9 * MAX);
  // what passes in the meantime is admitted again
  expect(admitted).toBeLessThanOrEqual(1.1 * MAX * (1 + minutes));
  await stack.stop();
});
