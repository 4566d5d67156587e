import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import type { ServiceDefinition } from 'platform/rpc/call.ts';
import { systemClock } from 'platform/core/clock.ts';
import { ERRORS, ServiceError } from 'platform/core/errors.ts';
import type { Operator } from 'platform/rpc/operator.ts';
import { retryWhileUnavailable } from '../../launcher/src/retry-while-unavailable.ts';
import { seed } from '../../launcher/src/seed.ts';
import { request } from '../support/request.ts';
import { startStack, type Stack } from '../support/stack.ts';

type Creation = 'createOrganization' | 'createUser' | 'createServerToken';
const DONE = true;
const NOT_DONE = false;

describe('a first start on shared engines when the outcome of its requests is unknown', () => {
  let stack: Stack;
  beforeAll(async () => {
    stack = await startStack({ replicas: 1 });
  });
  afterAll(async () => {
    await stack.stop();
  });
  beforeEach(async () => {
    for (const { id } of await validTokens()) await auth().revokeServerToken({ idOrName: id }, await asAdministrator());
  });

  const auth = () => stack.operator.client(AuthServiceService, 'auth');
  async function asAdministrator() {
    const { organization } = await auth().getOrganization({ idOrName: 'demo' }, stack.operator.as());
    const { principal } = await auth().assumeUser({ email: 'admin@demo.example' }, stack.operator.as(organization?.id));
    return stack.operator.asPrincipal(principal as never);
  }
  const validTokens = async () =>
    (await auth().listServerTokens({ pageSize: 1000, afterId: '' }, await asAdministrator())).serverTokens.filter(
      ({ revokedAt }) => revokedAt === undefined,
    );

  /** An operator that loses these replies of auth, each once and in this order; `done`: the request was executed. */
  function operatorLosing(
    losses: (readonly [method: Creation, done: boolean])[],
    afterRevoking: () => Promise<void> = async () => undefined,
  ): Operator {
    const wrapped = <D extends ServiceDefinition>(definition: D, process: Parameters<Operator['client']>[1]) => {
      const client = stack.operator.client(definition, process);
      return new Proxy(client, {
        get:
          (target, method: string) =>
          async (...call: [never, never]) => {
            if (losses[0]?.[0] !== method) {
              const reply = await target[method]!(...call);
              if (method === 'revokeServerToken') await afterRevoking();
              return reply;
            }
            const [, done] = losses.shift()!;
            if (done) await Promise.resolve(target[method]!(...call)).catch(() => undefined);
            throw new ServiceError('OUTCOME_UNKNOWN');
          },
      });
    };
    return { ...stack.operator, client: wrapped };
  }
  /** Seeds as the launcher does. @returns the lines that it printed, and the token that it shows */
  async function start(losses: (readonly [method: Creation, done: boolean])[]) {
    const operator = operatorLosing(losses);
    const tokenIds = new Set<string>();
    const printed: string[] = [];
    const attempt = () => seed(operator, true, systemClock, tokenIds);
    const seeded = await retryWhileUnavailable(attempt, (line) => void printed.push(line));
    expect(losses).toEqual([]);
    return { token: seeded?.token, printed };
  }
  const statusWith = async (token: string | undefined) =>
    (await request(stack.baseUrl, 'GET', '/api/memory/types', { token })).status;

  it('repeats every request, and shows the only valid token', async () => {
    const { token, printed } = await start([
      ['createOrganization', DONE],
      ['createUser', DONE],
      ['createServerToken', DONE],
      ['createServerToken', DONE],
      ['createServerToken', NOT_DONE],
    ]);
    expect(printed).toEqual(Array(5).fill(`  ${ERRORS.OUTCOME_UNKNOWN.message}; retrying`));
    expect(await statusWith(token)).toBe(200);
    expect((await validTokens()).map(({ name }) => name)).toEqual(['first start']);
  });

  it('keeps the token of another start that was faster, and shows none itself', async () => {
    const operator = operatorLosing([['createServerToken', NOT_DONE]]);
    const tokenIds = new Set<string>();
    const attempt = () => seed(operator, true, systemClock, tokenIds);
    await expect(attempt()).rejects.toMatchObject({ reason: 'OUTCOME_UNKNOWN' });
    const { token: faster } = await start([]);
    expect(await attempt()).toMatchObject({ organization: 'demo', token: undefined });
    expect(await statusWith(faster)).toBe(200);
    expect(await validTokens()).toHaveLength(1);
  });

  it('keeps the token that another start created after the revocation of its own, and shows none itself', async () => {
    let faster: string | undefined;
    const operator = operatorLosing(
      [['createServerToken', DONE]],
      async () => void ({ token: faster } = await start([])),
    );
    const tokenIds = new Set<string>();
    const attempt = () => seed(operator, true, systemClock, tokenIds);
    await expect(attempt()).rejects.toMatchObject({ reason: 'OUTCOME_UNKNOWN' });
    expect(await attempt()).toMatchObject({ organization: 'demo', token: undefined });
    expect(await statusWith(faster)).toBe(200);
    expect(await validTokens()).toHaveLength(1);
  });

  it('of two starts that lose their replies at the same time exactly one shows the token', async () => {
    const shown = await Promise.all([start([['createServerToken', DONE]]), start([['createServerToken', DONE]])]);
    const tokens = shown.flatMap(({ token }) => (token === undefined ? [] : [token]));
    expect(await Promise.all(tokens.map(statusWith))).toEqual([200]);
    expect(await validTokens()).toHaveLength(1);
  });
});
