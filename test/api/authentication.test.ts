import { makeToken, SERVER_TOKEN } from 'platform/core/bearer-token.ts';
import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { exchange } from '../support/raw-http.ts';
import { expectError } from '../support/expect-error.ts';
import { ROUTES } from '../support/routes.ts';
import { asAdministrator } from '../support/tenant-resources.ts';
import { eventually } from 'platform/service/test-end.ts';
import { request, type Reply } from '../support/request.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { RunningStack } from '../support/stack.ts';
import type { Tenant } from '../support/tenant.ts';

let stack: RunningStack;
let tenant: Tenant;
let invalid: Record<string, string | undefined>;
const auth = () => stack.operator.client(AuthServiceService, 'auth');
const bearer = (token: string): string => `Bearer ${token}`;
const sendWith = (
  authorization: string | undefined,
  { verb, path } = { verb: 'GET', path: '/api/memory/types' },
): Promise<Reply> =>
  request(stack.baseUrl, verb, path, { headers: authorization === undefined ? {} : { Authorization: authorization } });

beforeAll(async () => {
  stack = await sharedStack();
  tenant = await stack.tenant();
  const { value: revoked } = await auth().createServerToken(
    { name: 'revoked', expiresAt: undefined },
    await asAdministrator(stack, tenant),
  );
  expect((await sendWith(bearer(revoked))).status).toBe(200);
  await auth().revokeServerToken({ idOrName: 'revoked' }, await asAdministrator(stack, tenant));
  const administrator = await asAdministrator(stack, tenant);
  const { value: expired } = await auth().createServerToken(
    { name: 'short', expiresAt: new Date(Date.now() + 10_000).toISOString() },
    administrator,
  );
  const gone = await stack.tenant();
  expect((await sendWith(bearer(gone.token))).status).toBe(200);
  await auth().deactivateOrganization({ id: gone.organizationId }, stack.operator.as());
  await eventually(async () => (await sendWith(bearer(expired))).status === 401);
  invalid = {
    missing: undefined,
    'another scheme': `Basic ${Buffer.from('a:b').toString('base64')}`,
    'a scheme alone': 'Bearer',
    'a token alone': tenant.token,
    'two tokens': `Bearer ${tenant.token} ${tenant.token}`,
    malformed: 'Bearer nonsense',
    'a wrong checksum': bearer(tenant.token.slice(0, -1) + (tenant.token.endsWith('0') ? '1' : '0')),
    unknown: bearer(makeToken(SERVER_TOKEN)),
    'cut short': bearer(tenant.token.slice(0, -1)),
    'in another case': bearer(tenant.token.toUpperCase()),
    revoked: bearer(revoked),
    expired: bearer(expired),
    'of a deactivated organization': bearer(gone.token),
  };
});

describe('401', () => {
  it.each(ROUTES)('is the same reply for every kind of invalid token: $name', async (route) => {
    const replies = await Promise.all(Object.values(invalid).map((authorization) => sendWith(authorization, route)));
    for (const reply of replies) {
      expectError(reply, 401, 'unauthenticated');
      expect(reply.headers.get('www-authenticate')).toBe('Bearer');
    }
    expect(new Set(replies.map(({ text, body }) => text.replace(body.requestId, ''))).size).toBe(1);
    expect(new Set(replies.map(({ headers }) => [...headers.keys()].join())).size).toBe(1);
  });

  it.each(ROUTES)('is decided before query and body are looked at: $name', async ({ verb, path, takesBody }) => {
    const body = takesBody ? '{' : undefined;
    expectError(
      await request(stack.baseUrl, verb, `${path}?unknown=1`, { body, headers: { 'Content-Type': 'text/plain' } }),
      401,
      'unauthenticated',
    );
  });

  it('is answered to HEAD, too', async () => {
    const { status, text, headers } = await sendWith(undefined, { verb: 'HEAD', path: '/api/memory/types' });
    expect([status, text, headers.get('www-authenticate')]).toEqual([401, '', 'Bearer']);
  });
});

describe('before authentication', () => {
  it('an unknown route is 404, a wrong verb 405', async () => {
    expectError(await sendWith(undefined, { verb: 'GET', path: '/api/nothing' }), 404, 'not_found');
    const wrongVerb = await sendWith(undefined, { verb: 'PATCH', path: '/api/memory/types' });
    expectError(wrongVerb, 405, 'method_not_allowed', { allow: wrongVerb.headers.get('allow')?.split(', ') });
    expect(wrongVerb.body.allow).toEqual(expect.arrayContaining(['GET', 'POST', 'HEAD', 'OPTIONS']));
  });

  it('two Authorization headers are 400, valid or not', async () => {
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

  it('GET /healthz is answered', async () =>
    expect((await sendWith(undefined, { verb: 'GET', path: '/healthz' })).status).toBe(200));
});

describe('a valid token', () => {
  it.each(['Bearer', 'bearer', 'BEARER'])('is accepted after the scheme %s', async (scheme) =>
    expect((await sendWith(`${scheme} ${tenant.token}`)).status).toBe(200),
  );

  it('gives access to every route of its tier', async () => {
    const replies = await Promise.all(ROUTES.map((route) => sendWith(bearer(tenant.token), route)));
    expect(replies.map(({ status }) => status).filter((status) => [401, 403, 405].includes(status))).toEqual([]);
  });

  it('is refused on the next request after its organization is deactivated, and works after activation', async () => {
    const other = await stack.tenant();
    const statuses: number[] = [];
    for (const change of ['deactivateOrganization', 'activateOrganization', 'deactivateOrganization'] as const) {
      await auth()[change]({ id: other.organizationId }, stack.operator.as());
      statuses.push((await other.request('GET', '/api/memory/types')).status);
    }
    expect(statuses).toEqual([401, 200, 401]);
  });

  it('is listed with its last use, never with its value', async () => {
    const { serverTokens } = await auth().listServerTokens(
      { pageSize: 100, afterId: '' },
      await asAdministrator(stack, tenant),
    );
    const used = serverTokens.find(({ name }) => name === 'tests')!;
    expect([
      used.hint,
      Date.now() - Date.parse(used.lastUsedAt!) < 60_000,
      JSON.stringify(serverTokens).includes(tenant.token),
    ]).toEqual([tenant.token.slice(0, 8), true, false]);
  });
});

describe('403', () => {
  it('tier_required: every agent route, whatever the body, when the tier has no agents', async () => {
    const starter = await stack.tenant({ tier: 'starter' });
    for (const { verb, path, takesBody } of ROUTES.filter(({ method }) => method.options.capability === 'agents')) {
      expectError(await starter.request(verb, path, takesBody ? '{' : undefined), 403, 'tier_required');
    }
    expect((await starter.request('GET', '/api/memory/types')).status).toBe(200);
  });

  it('follows a change of the tier on the next request', async () => {
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
  it('counts the denials of a known token', async () => {
    const starter = await stack.tenant({ tier: 'starter' });
    await Promise.all(Array.from({ length: 3 }, () => starter.request('GET', '/api/agent/run')));
    const { value: token } = await auth().createServerToken(
      { name: 'lost', expiresAt: undefined },
      await asAdministrator(stack, starter),
    );
    await auth().revokeServerToken({ idOrName: 'lost' }, await asAdministrator(stack, starter));
    await Promise.all(Array.from({ length: 2 }, () => sendWith(bearer(token))));
    await stack.runJob('auth', 'denials');
    const found = await eventually(async () => {
      const { entries } = await auth().listAuditEntries(
        { pageSize: 100, beforeId: '', action: '' },
        stack.operator.as(starter.organizationId),
      );
      const denied = entries.filter(({ outcome }) => outcome === 'denied');
      // denials are counted per minute: there are more entries when a minute ends during the test
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
