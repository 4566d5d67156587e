import { AgentsServiceService } from 'proto/agents/v1/agents.ts';
import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { startMongo, type PrivateServer } from '../../dev-servers/src/private-server.ts';
import { LONG_ENGINE_TIMEOUTS } from '../support/load-settings.ts';
import { expectLedgerConsistent, ledgerOf } from '../support/organization-records.ts';
import { request } from '../support/request.ts';
import { startStack, type Stack } from '../support/stack.ts';

const TOKEN = /(?<=Server token, shown this once: +)\S+/g;

let mongo: PrivateServer;
let stack: Stack;
beforeAll(async () => {
  mongo = await startMongo();
  stack = await startStack({ env: { ...LONG_ENGINE_TIMEOUTS, MONGODB_URL: mongo.url } });
});
afterAll(async () => {
  await stack.stop();
  await mongo.stop();
});

describe('two launchers that start and seed at the same time', () => {
  it('create one organization, one user, one valid token, one grant and one version of each agent', async () => {
    const shown = stack.outputs().flatMap((output) => output.match(TOKEN) ?? []);
    expect({ launchers: stack.outputs().length, tokens: shown.length }).toEqual({ launchers: 2, tokens: 1 });
    const statuses = await Promise.all(
      stack.baseUrls.map(
        async (baseUrl) => (await request(baseUrl, 'GET', '/api/agent/run', { token: shown[0] })).status,
      ),
    );
    expect(statuses).toEqual([200, 200]);

    const { operator } = stack;
    const auth = operator.client(AuthServiceService, 'auth');
    const { organizations } = await auth.listOrganizations({ pageSize: 100, afterName: '' }, operator.as());
    expect(organizations.map(({ name }) => name)).toEqual(['demo']);
    const organizationId = organizations[0]!.id;
    const as = operator.as(organizationId);
    const { users } = await auth.listUsers({ pageSize: 100, afterEmail: '' }, as);
    expect(users.map(({ email }) => email)).toEqual(['admin@demo.example']);
    const { principal } = await auth.assumeUser({ email: 'admin@demo.example' }, as);
    const { serverTokens } = await auth.listServerTokens(
      { pageSize: 100, afterId: '' },
      operator.asPrincipal(principal as never),
    );
    expect(serverTokens.map(({ name, revokedAt }) => [name, revokedAt])).toEqual([['first start', undefined]]);

    const ledger = await ledgerOf(stack, { organizationId, token: '' });
    expectLedgerConsistent(ledger);
    expect(ledger.rows.map(({ kind, grantedDeltaMicros }) => [kind, grantedDeltaMicros])).toEqual([
      ['GRANT', 1_000_000_000],
    ]);
    const { agents } = await operator.client(AgentsServiceService, 'agents').listAgents({}, as);
    expect(agents.length).toBeGreaterThan(0);
    expect(
      agents.filter(
        ({ state, latestVersion, publishedVersion }) =>
          state !== 'published' || latestVersion !== 1 || publishedVersion !== 1,
      ),
    ).toEqual([]);
  });
});
