import { ServiceError, unavailable } from 'platform/core/errors.ts';
import { serverToken } from 'platform/service/testing.ts';
import type { GatewayRequest } from '../../src/http/exchange.ts';
import type { Strangers } from '../../src/limits/strangers.ts';
import { makeAuthenticate, type AuthClient } from '../../src/policies/authenticate.ts';

const PRINCIPAL = serverToken('organization-1');

const NO_STRANGERS: Strangers = { requireRoom: () => undefined, wasValid: () => undefined, wasDenied: () => ({}) };

/** Authenticates requests with these tokens in one turn of the event loop. */
function authenticateAll(auth: AuthClient, tokens: readonly string[]): Promise<unknown>[] {
  const authenticate = makeAuthenticate(auth, NO_STRANGERS, 0);
  return tokens.map(async (token) => {
    const req = {
      exchange: { route: { options: { public: false }, method: { path: '/m' } }, requestId: token, headers: {} },
      socket: { remoteAddress: '127.0.0.1' },
      headers: { authorization: `Bearer ${token}` },
      rawHeaders: ['Authorization', `Bearer ${token}`],
    } as unknown as GatewayRequest;
    await authenticate(req, undefined as never, () => undefined);
    return req.exchange.principal;
  });
}

/** Auth, to which tokens that start with "new" are new; `firstUse` answers about one of them alone. */
function authThat(firstUse: (bearer: string) => Promise<void>) {
  const calls: string[][] = [];
  const auth: AuthClient = {
    async authenticate({ attempts }) {
      const bearers = attempts.map(({ bearer }) => bearer);
      calls.push(bearers);
      const isAlone = new Set(bearers).size === 1;
      if (isAlone && bearers[0]!.startsWith('new')) await firstUse(bearers[0]!);
      return {
        decisions: bearers.map((bearer) =>
          bearer.startsWith('new') && !isAlone ? { askAlone: true } : { principal: { ...PRINCIPAL, subject: bearer } },
        ),
      };
    },
  };
  return { auth, calls };
}

const TOKENS = ['a', 'new-1', 'b', 'new-2', 'c', 'new-1', 'd'];
const subject = (token: string) => ({ subject: token });

describe('a token about which auth wants to be asked alone', () => {
  it('is asked about once for all its requests of the turn, and each request gets its own decision', async () => {
    const { auth, calls } = authThat(async () => undefined);
    const principals = await Promise.all(authenticateAll(auth, TOKENS));
    expect(principals).toMatchObject(TOKENS.map(subject));
    expect(calls).toEqual([TOKENS, ['new-1', 'new-1'], ['new-2']]);
  });

  it('holds up no request of another token, and fails none', async () => {
    const write = Promise.withResolvers<void>();
    const { auth } = authThat((bearer) => (bearer === 'new-1' ? write.promise : Promise.resolve()));
    const requests = authenticateAll(auth, TOKENS);
    const isOther = (token: string | undefined) => token !== 'new-1';
    const others = requests.filter((_, index) => isOther(TOKENS[index]));
    expect(await Promise.all(others)).toMatchObject(TOKENS.filter(isOther).map(subject));
    write.reject(unavailable('The document store is not available', new Error('disk is full')));
    for (const request of requests.filter((_, index) => !isOther(TOKENS[index])))
      await expect(request).rejects.toMatchObject({ reason: 'UNAVAILABLE' });
  });

  it('is not asked about for ever', async () => {
    const auth: AuthClient = {
      authenticate: async ({ attempts }) => ({ decisions: attempts.map(() => ({ askAlone: true })) }),
    };
    const outcomes = await Promise.allSettled(authenticateAll(auth, ['a', 'b']));
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(outcomes.every((one) => one.status === 'rejected' && !(one.reason instanceof ServiceError))).toBe(true);
  });
});
