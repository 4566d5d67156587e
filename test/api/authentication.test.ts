import { makeToken } from '../../services/auth/src/server-tokens/rules.ts';
import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { exchange } from '../support/raw-http.ts';
import { expectError } from '../support/expect-error.ts';
import { ROUTES } from '../support/routes.ts';
import { eventually, request, startStack, type Reply, type Stack, type Tenant } from '../support/stack.ts';

let stack: Stack;
let tenant: Tenant;
let refused: Record<string, string | undefined>;
const auth = () => stack.operator.client(AuthServiceService, 'auth');
const asUser = async ({ administrator, organizationId }: Tenant) => {
  const { principal } = await auth().assumeUser({ email: administrator }, stack.operator.as(organizationId));
  return stack.operator.asPrincipal(principal!);
};
const bearing = (token: string): string => `Bearer ${token}`;
const ask = (
  authorization: string | undefined,
  { verb, path } = { verb: 'GET', path: '/api/memory/types' },
): Promise<Reply> =>
  request(stack.baseUrl, verb, path, { headers: authorization === undefined ? {} : { Authorization: authorization } });

beforeAll(async () => {
  stack = await startStack();
  tenant = await stack.tenant();
  const { value: revoked } = await auth().createServerToken(
    { name: 'revoked', expiresAt: undefined },
    await asUser(tenant),
  );
  expect((await ask(bearing(revoked))).status).toBe(200);
  await auth().revokeServerToken({ idOrName: 'revoked' }, await asUser(tenant));
  const user = await asUser(tenant);
  const { value: expired } = await auth().createServerToken(
    { name: 'short', expiresAt: new Date(Date.now() + 10_000).toISOString() },
    user,
  );
  const gone = await stack.tenant();
  expect((await ask(bearing(gone.token))).status).toBe(200);
  await auth().deactivateOrganization({ id: gone.organizationId }, stack.operator.as());
  await eventually(async () => (await ask(bearing(expired))).status === 401);
  refused = {
    missing: undefined,
    'another scheme': `Basic ${Buffer.from('a:b').toString('base64')}`,
    'a scheme alone': 'Bearer',
    'a token alone': tenant.token,
    'two tokens': `Bearer ${tenant.token} ${tenant.token}`,
    malformed: 'Bearer nonsense',
    'a wrong checksum': bearing(tenant.token.slice(0, -1) + (tenant.token.endsWith('0') ? '1' : '0')),
    unknown: bearing(makeToken()),
    'cut short': bearing(tenant.token.slice(0, -1)),
    'in another case': bearing(tenant.token.toUpperCase()),
    revoked: bearing(revoked),
    expired: bearing(expired),
    'of a deactivated organization': bearing(gone.token),
  };
});
afterAll(() => stack.stop());

describe('401', () => {
  it.each(ROUTES)('is one identical answer, whatever is wrong with the token: $name', async (route) => {
    const replies = await Promise.all(Object.values(refused).map((authorization) => ask(authorization, route)));
    for (const reply of replies) {
      expectError(reply, 401, 'unauthenticated');
      expect(reply.headers.get('www-authenticate')).toBe('Bearer');
    }
    expect(new Set(replies.map(({ text, body }) => text.replace(body.requestId, ''))).size).toBe(1);
    expect(new Set(replies.map(({ headers }) => [...headers.keys()].join())).size).toBe(1);
  });

  it.each(ROUTES)('comes before any look at the body: $name', async ({ verb, path, takesBody }) => {
    const body = takesBody ? '{' : undefined;
    expectError(
      await request(stack.baseUrl, verb, `${path}?unknown=1`, { body, headers: { 'Content-Type': 'text/plain' } }),
      401,
      'unauthenticated',
    );
  });

  it('comes with HEAD, too', async () => {
    const { status, text, headers } = await ask(undefined, { verb: 'HEAD', path: '/api/memory/types' });
    expect([status, text, headers.get('www-authenticate')]).toEqual([401, '', 'Bearer']);
  });
});

describe('before a token is asked for', () => {
  it('an unknown route is 404, a wrong verb 405', async () => {
    expectError(await ask(undefined, { verb: 'GET', path: '/api/nothing' }), 404, 'not_found');
    const wrongVerb = await ask(undefined, { verb: 'PATCH', path: '/api/memory/types' });
    expectError(wrongVerb, 405, 'method_not_allowed', { allow: wrongVerb.headers.get('allow')?.split(', ') });
    expect(wrongVerb.body.allow).toEqual(expect.arrayContaining(['GET', 'POST', 'HEAD', 'OPTIONS']));
  });

  it('two Authorization headers are 400, be they valid or not', async () => {
    const { host } = new URL(stack.baseUrl);
    for (const second of [tenant.token, 'nonsense']) {
      const lines = [
        'GET /api/memory/types HTTP/1.1',
        `Host: ${host}`,
        'Connection: close',
        `Authorization: Bearer ${tenant.token}`,
        `authorization: Bearer ${second}`,
      ];
      expectError(await exchange(stack.baseUrl, lines), 400, 'invalid_request');
    }
  });

  it('health is answered', async () =>
    expect((await ask(undefined, { verb: 'GET', path: '/health' })).status).toBe(200));
});

describe('a valid token', () => {
  it.each(['Bearer', 'bearer', 'BEARER'])('is taken after the scheme %s', async (scheme) =>
    expect((await ask(`${scheme} ${tenant.token}`)).status).toBe(200),
  );

  it('opens every route of its tier', async () => {
    const replies = await Promise.all(ROUTES.map((route) => ask(bearing(tenant.token), route)));
    expect(replies.map(({ status }) => status).filter((status) => [401, 403, 405].includes(status))).toEqual([]);
  });

  it('is refused with the first request after its organization was deactivated, and taken again after it was activated', async () => {
    const other = await stack.tenant();
    const statuses: number[] = [];
    for (const change of ['deactivateOrganization', 'activateOrganization', 'deactivateOrganization'] as const) {
      await auth()[change]({ id: other.organizationId }, stack.operator.as());
      statuses.push((await other.request('GET', '/api/memory/types')).status);
    }
    expect(statuses).toEqual([401, 200, 401]);
  });

  it('is listed with the time of its use, never with its value', async () => {
    const { serverTokens } = await auth().listServerTokens({ pageSize: 100, afterId: '' }, await asUser(tenant));
    const used = serverTokens.find(({ name }) => name === 'tests')!;
    expect([
      used.hint,
      Date.now() - Date.parse(used.lastUsedAt!) < 60_000,
      JSON.stringify(serverTokens).includes(tenant.token),
    ]).toEqual([tenant.token.slice(0, 8), true, false]);
  });
});

describe('403', () => {
  it('tier_required: every agent route for an organization whose tier has no agents, whatever the body', async () => {
    const starter = await stack.tenant({ tier: 'starter' });
    for (const { verb, path, takesBody } of ROUTES.filter(({ method }) => method.policy.capability === 'agents')) {
      expectError(await starter.request(verb, path, takesBody ? '{' : undefined), 403, 'tier_required');
    }
    expect((await starter.request('GET', '/api/memory/types')).status).toBe(200);
  });

  it('follows the tier with the next request', async () => {
    const climber = await stack.tenant({ tier: 'starter' });
    const statuses: number[] = [];
    for (const tier of ['professional', 'starter', 'enterprise']) {
      await auth().setOrganizationTier({ id: climber.organizationId, tier }, stack.operator.as());
      statuses.push((await climber.request('GET', '/api/agent/run')).status);
    }
    expect(statuses).toEqual([200, 403, 200]);
  });
});

describe('the audit trail', () => {
  it('has the denials of a known token, counted', async () => {
    const starter = await stack.tenant({ tier: 'starter' });
    await Promise.all(Array.from({ length: 3 }, () => starter.request('GET', '/api/agent/run')));
    const { value: token } = await auth().createServerToken(
      { name: 'lost', expiresAt: undefined },
      await asUser(starter),
    );
    await auth().revokeServerToken({ idOrName: 'lost' }, await asUser(starter));
    await Promise.all(Array.from({ length: 2 }, () => ask(bearing(token))));
    await stack.runJob('auth', 'denials');
    const found = await eventually(async () => {
      const { entries } = await auth().listAuditEntries(
        { pageSize: 100, beforeId: '', action: '' },
        stack.operator.as(starter.organizationId),
      );
      const denied = entries.filter(({ outcome }) => outcome === 'denied');
      // one entry per minute, so there are more when the minute ends now
      const counted = (code: string, name: string) =>
        denied
          .filter((entry) => entry.code === code && entry.actorName === name)
          .reduce((sum, { count }) => sum + count, 0);
      const counts = [counted('tier_required', 'tests'), counted('unauthenticated', 'lost')];
      return counts[0]! >= 3 && counts[1]! >= 2 && counts;
    });
    expect(found).toEqual([3, 2]);
  });
});
