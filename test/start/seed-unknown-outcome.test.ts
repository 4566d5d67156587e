import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import type { ServiceDefinition } from 'platform/rpc/call.ts';
import { systemClock } from 'platform/core/clock.ts';
import { ServiceError } from 'platform/core/errors.ts';
import type { Operator } from 'platform/rpc/operator.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { retryWhileUnavailable } from '../../launcher/src/retry-while-unavailable.ts';
import { seed } from '../../launcher/src/seed.ts';
import { request, startStack, type Stack } from '../support/stack.ts';

type Creation = 'createOrganization' | 'createUser' | 'createServerToken';
const DONE = true;
const NOT_DONE = false;

describe('a first start on shared engines that is not told whether its creations were done', () => {
  let stack: Stack;
  const folder = temporaryFolder();
  beforeAll(async () => {
    stack = await startStack({ replicas: 1 });
  });
  afterAll(async () => {
    await stack.stop();
    folder.remove();
  });
  beforeEach(async () => {
    for (const { id } of await live()) await auth().revokeServerToken({ idOrName: id }, await asAdministrator());
  });

  const auth = () => stack.operator.client(AuthServiceService, 'auth');
  async function asAdministrator() {
    const { organization } = await auth().getOrganization({ idOrName: 'demo' }, stack.operator.as());
    const { principal } = await auth().assumeUser({ email: 'admin@demo.example' }, stack.operator.as(organization?.id));
    return stack.operator.asPrincipal(principal as never);
  }
  const live = async () =>
    (await auth().listServerTokens({ pageSize: 1000, afterId: '' }, await asAdministrator())).serverTokens.filter(
      ({ revokedAt }) => revokedAt === undefined,
    );

  /** An operator to whom these answers of auth are lost, each once and in this order; what was asked may have been done. */
  function losing(
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
              const answer = await target[method]!(...call);
              if (method === 'revokeServerToken') await afterRevoking();
              return answer;
            }
            const [, done] = losses.shift()!;
            if (done) await target[method]!(...call).catch(() => undefined);
            throw new ServiceError('OUTCOME_UNKNOWN');
          },
      });
    };
    return { ...stack.operator, client: wrapped };
  }
  /** One start: what it says meanwhile, and the token that it shows. */
  async function start(losses: (readonly [method: Creation, done: boolean])[]) {
    const operator = losing(losses);
    const tokenIds = new Set<string>();
    const said: string[] = [];
    const once = () => seed(operator, folder.path, true, systemClock, tokenIds);
    const seeded = await retryWhileUnavailable(once, { say: (line) => void said.push(line), isStopping: () => false });
    expect(losses).toEqual([]);
    return { token: seeded?.token, said };
  }
  const statusWith = async (token: string | undefined) =>
    (await request(stack.baseUrl, 'GET', '/api/memory/types', { token })).status;

  it('asks again, whatever it was, and shows a token that works: the only one', async () => {
    const { token, said } = await start([
      ['createOrganization', DONE],
      ['createUser', DONE],
      ['createServerToken', DONE],
      ['createServerToken', DONE],
      ['createServerToken', NOT_DONE],
    ]);
    expect(said).toEqual(Array(5).fill('  It cannot be told whether this was done; asking again'));
    expect(await statusWith(token)).toBe(200);
    expect((await live()).map(({ name }) => name)).toEqual(['first start']);
  });

  it('leaves the token of another start that was faster, which alone shows one', async () => {
    const operator = losing([['createServerToken', NOT_DONE]]);
    const tokenIds = new Set<string>();
    const once = () => seed(operator, folder.path, true, systemClock, tokenIds);
    await expect(once()).rejects.toMatchObject({ reason: 'OUTCOME_UNKNOWN' });
    const { token: faster } = await start([]);
    expect(await once()).toMatchObject({ organization: 'demo', token: undefined });
    expect(await statusWith(faster)).toBe(200);
    expect(await live()).toHaveLength(1);
  });

  it('leaves the token of another start that took the name when its own was revoked', async () => {
    let faster: string | undefined;
    const operator = losing([['createServerToken', DONE]], async () => void ({ token: faster } = await start([])));
    const tokenIds = new Set<string>();
    const once = () => seed(operator, folder.path, true, systemClock, tokenIds);
    await expect(once()).rejects.toMatchObject({ reason: 'OUTCOME_UNKNOWN' });
    expect(await once()).toMatchObject({ organization: 'demo', token: undefined });
    expect(await statusWith(faster)).toBe(200);
    expect(await live()).toHaveLength(1);
  });

  it('of two that are not told at the same moment one shows the token, whichever made it', async () => {
    const shown = await Promise.all([start([['createServerToken', DONE]]), start([['createServerToken', DONE]])]);
    const tokens = shown.flatMap(({ token }) => (token === undefined ? [] : [token]));
    expect(await Promise.all(tokens.map(statusWith))).toEqual([200]);
    expect(await live()).toHaveLength(1);
  });
});
