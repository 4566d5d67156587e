import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { CreditsServiceService } from 'proto/credits/v1/credits.ts';
import { createLocalJWKSet, jwtVerify } from 'jose';
import { newId } from 'platform/core/ids.ts';
import { expectError } from '../support/expect-error.ts';
import { request } from '../support/request.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { RunningStack } from '../support/stack.ts';

let stack: RunningStack;
beforeAll(async () => {
  stack = await sharedStack();
});
const whoami = (token: string, baseUrl = stack.baseUrl) => request(baseUrl, 'GET', '/api/auth/whoami', { token });

const left = (rate: string, limit: string): object => {
  return { rate, limit, maxPerMinute: expect.any(Number), left: expect.any(Number) };
};

it('a server token learns who it is, what its organization may use, and its credits', async () => {
  const tenant = await stack.tenant({ tier: 'professional', credits: 12 });
  const { status, body, headers } = await tenant.request('GET', '/api/auth/whoami');
  expect([status, body]).toEqual([
    200,
    {
      kind: 'server_token',
      id: expect.any(String),
      name: 'tests',
      organization: { id: tenant.organizationId, name: tenant.name },
      roles: ['admin'],
      groups: [],
      tier: 'professional',
      capabilities: ['memory', 'agents'],
      limits: expect.objectContaining({ memory_types: 200 }),
      credits: 12,
      rates: [
        left('requests', 'token'),
        left('requests', 'organization'),
        left('runs', 'token'),
        left('runs', 'organization'),
      ],
    },
  ]);
  // the headers say the same of the requests; a little later there may be more room again
  const [requests] = body.rates;
  expect(headers.get('ratelimit-policy')).toContain(`"token";q=${requests.maxPerMinute};`);
  const [, r] = /"token";r=(\d+)/.exec(headers.get('ratelimit') as string) as unknown as [string, string];
  expect(requests.left).toBeGreaterThanOrEqual(Number(r));
  expect(requests.left).toBeLessThanOrEqual(requests.maxPerMinute);
  await stack.operator
    .client(CreditsServiceService, 'credits')
    .grant({ id: newId(), amountMicros: 500_000, note: '' }, stack.operator.as(tenant.organizationId));
  expect((await whoami(tenant.token)).body.credits).toBe(12.5);
});

it('a user works with a JWT at every gateway, anybody can check it by the published keys, and it dies when revoked', async () => {
  const tenant = await stack.tenant();
  const asOperator = stack.operator.as(tenant.organizationId);
  const auth = stack.operator.client(AuthServiceService, 'auth');
  const { jwt, grant } = await auth.issueJwt({ email: tenant.administrator }, asOperator);
  for (const baseUrl of stack.baseUrls) {
    expect((await whoami(jwt, baseUrl)).body).toMatchObject({
      kind: 'user',
      name: tenant.administrator,
      roles: ['admin', 'security_admin'],
    });
    const created = await request(baseUrl, 'POST', '/api/memory/types', {
      token: jwt,
      body: { type: `t-${newId()}`, jsonSchema: { type: 'object' } },
    });
    expect(created.status).toBe(201);
    const jwks = await request(baseUrl, 'GET', '/.well-known/jwks.json');
    expect([jwks.status, jwks.headers.get('cache-control')]).toEqual([200, 'public, max-age=300']);
    const { payload } = await jwtVerify(jwt, createLocalJWKSet(jwks.body), { typ: 'at+jwt' });
    expect(payload.org_id).toBe(tenant.organizationId);
  }
  await auth.revokeGrant({ id: grant!.id }, asOperator);
  for (const baseUrl of stack.baseUrls) expectError(await whoami(jwt, baseUrl), 401, 'unauthenticated');
});
