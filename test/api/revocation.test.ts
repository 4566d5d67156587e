import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import type { CallOptions } from 'platform/rpc/call.ts';
import { startRevocationProbe } from '../support/revocation-probe.ts';
import { startStack, type Stack, type Tenant } from '../support/stack.ts';

const CONNECTIONS = 64;
const TOKENS = 8;
const REVOKED = 5;
const ROUNDS = 3;
const UNAVAILABLE_AT_MOST = 0.05;

let stack: Stack;
beforeAll(async () => {
  stack = await startStack();
});
afterAll(() => stack.stop());

describe(`while ${CONNECTIONS} connections hammer the gateway`, () => {
  it('a revoked token is refused on the next request, and its neighbours go on', async () => {
    const { as, tokens } = await tenantWithTokens();
    const auth = stack.operator.client(AuthServiceService, 'auth');
    const { counts, change, stop } = startRevocationProbe(stack.baseUrl, tokens, CONNECTIONS);
    for (let round = 0; round < REVOKED; round++) {
      await change([tokens[round] as string], 401, () => auth.revokeServerToken({ idOrName: `token ${round}` }, as));
    }
    await stop();
    expectRight('revoked tokens', counts);
  });

  it('a deactivated organization is refused on the next request, a reactivated one is let in again, and its neighbour goes on', async () => {
    const [
      neighbour,
      {
        tenant: { organizationId: id },
        tokens,
      },
    ] = await Promise.all([tenantWithTokens(), tenantWithTokens()]);
    const auth = stack.operator.client(AuthServiceService, 'auth');
    const { counts, change, stop } = startRevocationProbe(stack.baseUrl, [...neighbour.tokens, ...tokens], CONNECTIONS);
    for (let round = 0; round < ROUNDS; round++) {
      await change(tokens, 401, () => auth.deactivateOrganization({ id }, stack.operator.as()));
      await change(tokens, 200, () => auth.activateOrganization({ id }, stack.operator.as()));
    }
    await stop();
    expectRight('deactivated organizations', counts);
  });

  it('the refusal of a revoked token and of a deactivated organization are the same but for the request id', async () => {
    const [revoked, deactivated] = await Promise.all([stack.tenant(), stack.tenant()]);
    const auth = stack.operator.client(AuthServiceService, 'auth');
    await auth.revokeServerToken({ idOrName: 'tests' }, await asAdministrator(revoked));
    await auth.deactivateOrganization({ id: deactivated.organizationId }, stack.operator.as());
    const [one, other] = await Promise.all([
      revoked.request('GET', '/api/memory/types'),
      deactivated.request('GET', '/api/memory/types'),
    ]);
    expect([one.status, one.headers.get('www-authenticate'), { ...one.body, requestId: '' }]).toEqual([
      401,
      'Bearer',
      { error: 'Missing or invalid token', code: 'unauthenticated', requestId: '' },
    ]);
    expect(other.text.replace(other.body.requestId, one.body.requestId)).toBe(one.text);
  });
});

/** An organization whose security administrator has made "token 0", "token 1" ... */
async function tenantWithTokens(): Promise<{ tenant: Tenant; as: CallOptions; tokens: string[] }> {
  const tenant = await stack.tenant();
  const as = await asAdministrator(tenant);
  const auth = stack.operator.client(AuthServiceService, 'auth');
  const tokens: string[] = [];
  for (let index = 0; index < TOKENS; index++)
    tokens.push((await auth.createServerToken({ name: `token ${index}`, expiresAt: undefined }, as)).value);
  return { tenant, as, tokens };
}

async function asAdministrator({ organizationId, administrator }: Tenant): Promise<CallOptions> {
  const { principal } = await stack.operator
    .client(AuthServiceService, 'auth')
    .assumeUser({ email: administrator }, stack.operator.as(organizationId));
  if (!principal) throw new Error('auth made no principal');
  return stack.operator.asPrincipal(principal);
}

/** A machine that stalls makes answers 503; a product that answers so for long is none that refuses and accepts. */
function expectRight(
  what: string,
  { accepted, rejected, unavailable, wrong }: ReturnType<typeof startRevocationProbe>['counts'],
): void {
  process.stdout.write(
    `${what}: ${accepted} accepted, ${rejected} rejected, ${unavailable} unavailable, ${wrong.length} wrong\n`,
  );
  expect(wrong).toEqual([]);
  expect(unavailable).toBeLessThanOrEqual(UNAVAILABLE_AT_MOST * (accepted + rejected));
}
