import fc from 'fast-check';
import { restMethods } from '../../gateway/src/contract/rest-methods.ts';
import { openApiDocument } from '../../gateway/src/openapi/document.ts';
import { badRequests } from '../support/bad-requests.ts';
import { sharedStack } from '../support/shared-stack.ts';
import { expressionAgent, type Tenant } from '../support/tenant.ts';

const COUNT = Number(process.env.FUZZ_COUNT ?? 400);
const SEED = Number(process.env.FUZZ_SEED ?? 1);
const LONG_MS = 600_000;
const REFUSED = [400, 404, 413, 415];

describe(`requests that /openapi.json does not allow (FUZZ_COUNT=${COUNT} FUZZ_SEED=${SEED})`, () => {
  let tenant: Tenant;
  beforeAll(async () => {
    tenant = await (await sharedStack()).tenant({ credits: 10, agents: [expressionAgent('invoice-total', '1')] });
    const type = { type: 'existing', jsonSchema: { type: 'object' } };
    const { body } = await tenant.request('POST', '/api/memory/types', type);
    await tenant.request('POST', '/api/memory/objects', { typeId: body.id, key: 'k', content: { a: 1 } });
  });

  /** Everything of the organization that a client can see, but for what each request takes of its rate limits. */
  const state = async (): Promise<unknown> =>
    Promise.all(
      ['/api/memory/types', '/api/memory/objects', '/api/agent/executions', '/api/agent/run', '/api/auth/whoami'].map(
        async (path) => ({ ...(await tenant.request('GET', path)).body, rates: undefined }),
      ),
    );

  it(
    'are refused by a documented 4xx, in JSON, with sentences that have a subject, and change nothing',
    async () => {
      const before = await state();
      await fc.assert(
        fc.asyncProperty(
          badRequests(openApiDocument(restMethods(), '')),
          async ({ why, verb, path, body, headers }) => {
            // request() compares every answer with the document, and reads its sentences
            const { status, body: answer } = await tenant.request(verb, path, body, headers);
            expect({ why, status, code: answer?.code }).toEqual({
              why,
              status: REFUSED.includes(status) ? status : 'a refusal',
              code: expect.any(String),
            });
          },
        ),
        { numRuns: COUNT, seed: SEED },
      );
      expect(await state()).toEqual(before);
    },
    LONG_MS,
  );
});
