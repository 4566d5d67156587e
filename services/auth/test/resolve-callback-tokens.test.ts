import { CALLBACK_TOKEN, makeToken } from 'platform/core/bearer-token.ts';
import type { CallOptions } from 'platform/rpc/call.ts';
import { resolveCallbackTokens } from '../src/authentication/resolve-callback-tokens.ts';

it('asks agents about a callback token no longer than its caller waits', async () => {
  const asked: CallOptions[] = [];
  const resolve = resolveCallbackTokens({
    agents: {
      useCallbackToken(_request, options) {
        asked.push(options);
        return Promise.resolve({ run: undefined, admitted: 0, maxCalls: 0 });
      },
    },
  });
  const bearer = makeToken(CALLBACK_TOKEN);
  const { signal } = new AbortController();
  const attempts = [{ bearer, method: '', requestId: 'r', address: '' }];
  expect(await resolve([bearer], { attempts, nowMs: 0, deadline: 3_000, signal })).toEqual(new Map());
  expect(asked).toMatchObject([{ requestId: 'r', deadline: 3_000 }]);
  expect(asked[0]!.signal).toBe(signal);
});
