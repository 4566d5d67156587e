import { HOUR_MS } from 'platform/core/clock.ts';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AgentsServiceService } from 'proto/agents/v1/agents.ts';
import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { CreditsServiceService } from 'proto/credits/v1/credits.ts';
import { systemClock, type Clock } from 'platform/core/clock.ts';
import { seed } from '../../launcher/src/seed.ts';
import { REPOSITORY, startStack, type Stack } from '../support/stack.ts';

const SUCCESSOR = 'second@demo.example';

describe('a replica that starts with an empty folder on engines which are in use for long', () => {
  let stack: Stack;
  beforeAll(async () => {
    stack = await startStack({ replicas: 1 });
  });
  afterAll(async () => {
    await stack.stop();
  });

  const after = (ms: number): Clock => ({ now: () => systemClock.now() + ms });

  /** The present state of everything that the first start creates. */
  async function state() {
    const { operator } = stack;
    const auth = operator.client(AuthServiceService, 'auth');
    const { organizations } = await auth.listOrganizations({ pageSize: 100, afterName: '' }, operator.as());
    const as = operator.as(organizations[0]?.id);
    const { users } = await auth.listUsers({ pageSize: 100, afterEmail: '' }, as);
    const { principal } = await auth.assumeUser({ email: users[0]?.email as string }, as);
    const [{ serverTokens }, { rows }, { agents }] = await Promise.all([
      auth.listServerTokens({ pageSize: 100, afterId: '' }, operator.asPrincipal(principal as never)),
      operator.client(CreditsServiceService, 'credits').listLedgerRows({ pageSize: 100, beforeSequence: 0 }, as),
      operator.client(AgentsServiceService, 'agents').listAgents({}, as),
    ]);
    return { organizations, users, serverTokens, rows, agents };
  }

  it('prints no token and restores nothing that was revoked, removed, retired or updated', async () => {
    const { operator } = stack;
    const {
      organizations: [demo],
    } = await state();
    const as = operator.as(demo?.id);
    const auth = operator.client(AuthServiceService, 'auth');
    await auth.createUser({ email: SUCCESSOR, name: 'Successor', roles: ['admin', 'security_admin'], groups: [] }, as);
    const { principal } = await auth.assumeUser({ email: SUCCESSOR }, as);
    await auth.revokeServerToken({ idOrName: 'first start' }, operator.asPrincipal(principal as never));
    await auth.removeUser({ email: 'admin@demo.example' }, as);
    const agents = operator.client(AgentsServiceService, 'agents');
    await agents.retireAgent({ name: 'echo' }, as);
    const definition = JSON.parse(readFileSync(join(REPOSITORY, 'examples/agents/word-count.json'), 'utf8'));
    await agents.applyAgent({ definition: JSON.stringify({ ...definition, pricing: { base: 2 } }) }, as);
    await agents.publishAgent({ name: 'word-count', version: 2 }, as);

    const before = await state();
    expect({
      users: before.users.map(({ email }) => email),
      live: before.serverTokens.filter(({ revokedAt }) => revokedAt === undefined),
      grants: before.rows.length,
      agents: before.agents.map(({ name, state, publishedVersion }) => [name, state, publishedVersion]),
    }).toEqual({
      users: [SUCCESSOR],
      live: [],
      grants: 1,
      agents: [
        ['csv-rows', 'published', 1],
        ['echo', 'retired', undefined],
        ['invoice-total', 'published', 1],
        ['notes', 'published', 1],
        ['word-count', 'published', 2],
      ],
    });

    for (const later of [2 * HOUR_MS, 200 * 24 * HOUR_MS])
      expect(await seed(operator, true, after(later))).toBeUndefined();
    expect(await state()).toEqual(before);
  });

  it('within an hour completes what an interrupted first start began', async () => {
    expect(await seed(stack.operator, true, after(HOUR_MS / 2))).toMatchObject({
      organization: 'demo',
      agents: ['csv-rows', 'echo', 'invoice-total', 'notes', 'word-count'],
    });
    expect((await state()).users.map(({ email }) => email)).toEqual(['admin@demo.example', SUCCESSOR]);
  });
});
