import { once } from 'node:events';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { errorReply } from '../../src/http/errors.ts';
import { beginExchange, type GatewayRequest, type Policy } from '../../src/http/exchange.ts';
import { hostPipeline, type ErrorHandler, type PolicyName } from '../../src/host/plugin.ts';
import { sendReply } from '../../src/http/reply.ts';
import { log } from '../fixture.ts';

describe('the pipeline', () => {
  const pass: Policy = (_req, _res, next) => next();
  const policiesWith = (given: Partial<Record<PolicyName, Policy>>): Record<PolicyName, Policy> => ({
    'find-route': pass,
    authenticate: pass,
    'limit-rates': pass,
    admit: pass,
    'read-body': pass,
    'call-service': pass,
    ...given,
  });
  const onError: ErrorHandler = (error, req, res) => sendReply(req, res, errorReply(error, req.exchange, log));

  async function answerOf(handle: RequestListener): Promise<{ status: number; json: unknown }> {
    const server = createServer((req, res) => {
      (req as GatewayRequest).exchange = beginExchange(req, new Set());
      handle(req, res);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const response = await fetch(`http://127.0.0.1:${(server.address() as { port: number }).port}/`);
    const json: unknown = await response.json();
    server.closeAllConnections();
    server.close();
    return { status: response.status, json };
  }

  it.each<[string, Policy]>([
    ['rejects', () => Promise.reject(new Error('secret'))],
    ['rejects with null', () => Promise.reject(null)],
    ['rejects with the word that Express takes for "skip"', () => Promise.reject('router')],
    [
      'rejects in a later event-loop turn',
      () =>
        new Promise((_, reject) => {
          setImmediate(() => reject(new Error('secret')));
        }),
    ],
    [
      'throws',
      () => {
        throw new Error('secret');
      },
    ],
    [
      'throws undefined',
      () => {
        throw undefined;
      },
    ],
  ])('answers 500 in JSON when a policy %s', async (_, policy) => {
    for (const name of ['find-route', 'call-service'] as const) {
      const { status, json } = await answerOf(await hostPipeline(policiesWith({ [name]: policy }), onError));
      expect({ status, json }).toEqual({
        status: 500,
        json: { error: 'Unexpected server error', code: 'internal', requestId: expect.any(String) },
      });
    }
  });
  it('makes no prototype for each request', async () => {
    const prototypes = new Set<unknown>();
    const answer: Policy = (req, res) => {
      prototypes.add(Object.getPrototypeOf((req as GatewayRequest & { egContext: object }).egContext));
      return sendReply(req, res, { status: 200, body: '{}' });
    };
    const handle = await hostPipeline(policiesWith({ 'call-service': answer }), onError);
    await answerOf(handle);
    await answerOf(handle);
    expect(prototypes.size).toBe(1);
  });
  it('answers 404 when no policy answers', async () => {
    expect((await answerOf(await hostPipeline(policiesWith({}), onError))).status).toBe(404);
  });
  it.each([
    ['in another order', '[{find-route: }, {admit: }, {authenticate: }, {read-body: }, {call-service: }]'],
    ['without one of them', '[{find-route: }, {admit: }, {read-body: }, {call-service: }]'],
    [
      'with one under a condition that is never true',
      '[{find-route: }, {authenticate: [{condition: {name: never}}]}, {admit: }, {read-body: }, {call-service: }]',
    ],
    ['not mounted at all', '[]'],
  ])('does not start with policies %s', async (_, policies) => {
    const file = join(mkdtempSync(join(tmpdir(), 'gateway-')), 'gateway.config.yml');
    writeFileSync(
      file,
      `apiEndpoints: {rest: {host: '*', pathRegex: '.*'}}\npolicies: [find-route, authenticate, admit, read-body, call-service]\npipelines: {rest: {apiEndpoints: [rest], policies: ${policies}}}\n`,
    );
    await expect(hostPipeline(policiesWith({}), onError, file)).rejects.toThrow('is not the expected one');
  });
});
