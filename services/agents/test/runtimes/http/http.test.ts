import { createHmac } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { createKeys, identityFilesOf } from 'platform/rpc/keys.ts';
import { eventually } from 'platform/service/test-end.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import type { HttpNeeds } from '../../../src/runtimes/http/runtime.ts';
import type { RunRequest, Runtime } from '../../../src/runtimes/runtime.ts';
import { LIMITS } from '../runners/pool-fixture.ts';
import { requestFor } from '../request-for.ts';
import { NO_RUNNERS, SECRET, testRuntimes } from '../test-runtimes.ts';
import { answerWith, startEndpoint, type Endpoint, type EndpointRequest } from '../network/endpoint.ts';

const OTHER_SECRET = `whsec_${Buffer.alloc(32, 'o').toString('base64')}`;

let answer: (request: EndpointRequest, response: ServerResponse) => void;
let endpoint: Endpoint;
let runtime: Runtime;
let secrets: string[];
const opened: Runtime[] = [];
const open = (given: Partial<HttpNeeds> = {}): Runtime => {
  const secretValues = () => Promise.resolve(secrets);
  const made = testRuntimes(NO_RUNNERS, { secretValues, ...given }).byType['http']!;
  opened.push(made);
  return made;
};
beforeEach(async () => {
  secrets = [SECRET];
  endpoint = await startEndpoint((request, response) => answer(request, response));
  runtime = open();
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((made) => made.stop()));
  await endpoint.close();
});

const agent = (more: object = {}) => ({
  type: 'http',
  ...{ url: `${endpoint.url}/run`, secretRef: 'signing', ...more },
});
const run = (more: object = {}, given: Partial<RunRequest> = {}) =>
  runtime.run({ ...requestFor(agent(more), { a: 1 }), ...given });
const check = (more: object) => runtime.check('one', agent(more));

describe('a call', () => {
  it('carries the args and what runs, signed by every valid value of the secret', async () => {
    secrets = [SECRET, OTHER_SECRET];
    answer = (_request, response) => answerWith(response, { output: 1 });
    await run({}, { idempotencyKey: 'once', agentExecutionId: 'the-execution', argsText: '{"a":1.0}' });
    const { headers, body } = endpoint.requests[0]!;
    expect(body).toBe(
      '{"agent":"tested","agentVersion":1,"agentExecutionId":"the-execution","organizationId":"one","args":{"a":1.0}}',
    );
    expect(headers).toMatchObject({ 'webhook-id': 'once', 'content-type': 'application/json' });
    const by = (secret: string) =>
      createHmac('sha256', Buffer.from(secret.slice(6), 'base64'))
        .update(`once.${headers['webhook-timestamp']}.${body}`)
        .digest('base64');
    expect(headers['webhook-signature']).toBe(`v1,${by(SECRET)} v1,${by(OTHER_SECRET)}`);
    expect(JSON.stringify(headers) + body).not.toContain(SECRET.slice(6));
  });

  it('fails without its secret, and nothing is sent', async () => {
    secrets = [];
    expect(await run()).toEqual({
      outcome: 'failed',
      message: expect.stringContaining('secret'),
      messages: [],
      usage: { calls: 0 },
    });
    expect(endpoint.requests).toEqual([]);
  });

  it('is answered also after a few interim responses', async () => {
    answer = (_request, response) => {
      response.writeContinue();
      for (let n = 0; n < 15; n++) response.writeProcessing();
      answerWith(response, { output: 1 });
    };
    expect(await run()).toMatchObject({ outcome: 'succeeded' });
  });

  it('uses a connection again, and closes those that are kept when the service stops', async () => {
    answer = (_request, response) => answerWith(response, { output: 1 });
    for (let i = 0; i < 5; i++) await run();
    expect(endpoint.connections()).toBe(1);
    await runtime.stop();
    await eventually(() => endpoint.connections() === 0);
  });
});

describe('an answer', () => {
  it.each<[string, (response: ServerResponse) => void, string]>([
    ['has another status', (response) => answerWith(response, { output: 1 }, 404), 'status 404'],
    ['is not JSON', (response) => void response.end('<html>'), 'not JSON'],
    ['has unknown members', (response) => answerWith(response, { output: 1, more: 2 }), 'must be'],
    ['has both members', (response) => answerWith(response, { output: 1, error: 'no' }), 'must be'],
    ['is a list', (response) => answerWith(response, [1]), 'must be'],
    ['is larger than its limit', (response) => void response.end(' '.repeat(200_000)), 'too large'],
    [
      'comes a byte at a time',
      (response) => {
        for (let n = 0; n < 90_000; n++) response.write(' ');
        response.end('{"output":1}');
      },
      'too many small chunks',
    ],
    [
      'comes after many interim responses',
      (response) => {
        for (let n = 0; n < 17; n++) response.writeProcessing();
        answerWith(response, { output: 1 });
      },
      'too many interim responses',
    ],
    [
      'is compressed',
      (response) => void response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('{"output":1}')),
      'compressed',
    ],
    [
      'redirects',
      (response) => void response.writeHead(307, { location: `${endpoint.url}/other` }).end(),
      'which is not followed',
    ],
  ])('that %s fails the run, once, and shows nothing of itself', async (_name, respond, message) => {
    answer = (_request, response) => respond(response);
    expect(await run({}, { limits: { ...LIMITS, outputBytes: 100_000 } })).toEqual({
      outcome: 'failed',
      message: expect.stringContaining(message),
      messages: [],
      usage: { calls: 1 },
    });
    expect(endpoint.requests).toHaveLength(1);
  });

  it('may say to the caller what went wrong, in at most a thousand characters', async () => {
    answer = (_request, response) => answerWith(response, { error: 'e'.repeat(5_000) });
    expect(await run()).toMatchObject({ outcome: 'failed', message: 'e'.repeat(1_000) });
  });
});

describe('its secret in an answer', () => {
  it.each([SECRET, SECRET.slice(6), Buffer.from(SECRET).toString('base64'), encodeURIComponent(SECRET.slice(6))])(
    'is not in the error or the messages: %s',
    async (form) => {
      answer = (_request, response) => answerWith(response, { error: `no ${form}!`, messages: [`a ${form}`] });
      const result = await run({}, { trace: true });
      expect(result).toMatchObject({ outcome: 'failed', message: expect.stringContaining('[redacted]') });
      expect(JSON.stringify(result)).not.toContain(form);
    },
  );
});

describe('a failure that may pass', () => {
  it.each([429, 502, 503, 504])('status %d: the call is repeated with the same id', async (status) => {
    answer = (_request, response) =>
      answerWith(
        response,
        endpoint.requests.length < 3 ? {} : { output: 'at last' },
        endpoint.requests.length < 3 ? status : 200,
      );
    expect(await run()).toMatchObject({ outcome: 'succeeded', outputText: '"at last"', usage: { calls: 3 } });
    expect(new Set(endpoint.requests.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  });

  it('a connection that is cut: the same', async () => {
    answer = (_request, response) =>
      endpoint.requests.length === 1 ? response.socket!.destroy() : answerWith(response, { output: 1 });
    expect(await run()).toMatchObject({ outcome: 'succeeded', usage: { calls: 2 } });
  });

  it('is repeated as often as the definition allows', async () => {
    answer = (_request, response) => answerWith(response, {}, 503);
    expect(await run({ retries: 0 })).toMatchObject({ outcome: 'failed', usage: { calls: 1 } });
    expect(await run({ retries: 1 })).toMatchObject({
      outcome: 'failed',
      message: "The agent's endpoint answered with status 503",
      messages: [],
      usage: { calls: 2 },
    });
  });

  it.each(['3600', '99999999999'])('is not repeated past the time limit, though after %s s', async (seconds) => {
    answer = (_request, response) => void response.writeHead(503, { 'retry-after': seconds }).end();
    const limits = { ...LIMITS, wallMs: 300 };
    expect(await run({}, { limits })).toEqual({ outcome: 'timed_out', usage: { calls: 1 } });
  });

  it('an endpoint that nobody listens at cannot be reached', async () => {
    const url = endpoint.url;
    await endpoint.close();
    expect(await run({ url })).toEqual({
      outcome: 'failed',
      message: "The agent's endpoint could not be reached",
      messages: [],
      usage: { calls: 3 },
    });
  });
});

describe('the end of a run', () => {
  it.each(['cancelled', 'interrupted', 'timed_out'] as const)('closes its connection: %s', async (outcome) => {
    answer = (_request, response) => void response.writeHead(200).write('{"output":');
    const caller = new AbortController();
    const limits = { ...LIMITS, wallMs: outcome === 'timed_out' ? 1_000 : 60_000 };
    const running = run({}, { signal: caller.signal, limits });
    await eventually(() => endpoint.connections() === 1 && endpoint.requests.length === 1);
    if (outcome === 'cancelled') caller.abort();
    if (outcome === 'interrupted') await runtime.stop();
    expect(await running).toMatchObject({ outcome });
    await eventually(() => endpoint.connections() === 0);
  });
});

describe('where an endpoint may be', () => {
  it.each([
    'https://localhost/',
    'https://127.0.0.1/',
    'https://127.1/',
    'https://0x7f000001/',
    'https://2130706433/',
    'https://017700000001/',
    'https://[::1]/',
    'https://[::ffff:127.0.0.1]/',
    'https://[::ffff:7f00:1]/',
    'https://169.254.169.254/latest/meta-data/',
    'https://10.0.0.1/',
    'https://[fd00:ec2::254]/',
  ])('%s is not called', async (url) => {
    runtime = open({ networks: [] });
    expect(await run({ url, retries: 0 })).toEqual({
      outcome: 'failed',
      message: "The agent's endpoint is at an address that may not be called",
      messages: [],
      usage: { calls: 1 },
    });
    if (!url.includes('localhost'))
      expect(await check({ url })).toEqual([{ path: '/url', message: expect.any(String) }]);
  });

  it.each([
    ['http://example.com/', 'https'],
    ['ftp://example.com/', 'https'],
    ['file:///etc/passwd', 'https'],
    ['example.com', 'https'],
    ['https://user:secret@example.com/', 'password'],
    ['https://example.com/#part', 'fragment'],
  ])('%s is refused when the definition is applied', async (url, words) => {
    runtime = open({ networks: [] });
    expect(await check({ url })).toEqual([{ path: '/url', message: expect.stringContaining(words) }]);
  });

  it('a listed network may be called without TLS; the public internet may not', async () => {
    expect(await check({})).toEqual([]);
    expect(await check({ url: 'http://93.184.215.14/' })).toEqual([{ path: '/url', message: expect.any(String) }]);
  });

  it('its certificate must be one that this machine trusts, and the call is not repeated', async () => {
    const folder = temporaryFolder();
    await createKeys(folder.path, ['gateway']);
    const pem = readFileSync(identityFilesOf(folder.path, 'gateway').certFile);
    const secure = await startEndpoint((_request, response) => answerWith(response, { output: 1 }), {
      cert: pem,
      key: pem,
    });
    expect(await run({ url: secure.url })).toEqual({
      outcome: 'failed',
      message: "The certificate of the agent's endpoint could not be verified",
      messages: [],
      usage: { calls: 1 },
    });
    expect(secure.requests).toEqual([]);
    await secure.close();
    folder.remove();
  });
});

describe('its secret', () => {
  it('must be set, and of the form that signs', async () => {
    secrets = [];
    expect(await check({})).toEqual([{ path: '/secretRef', message: expect.stringContaining('secret set signing') }]);
    secrets = ['hunter2'];
    const faults = await check({});
    expect(faults).toEqual([{ path: '/secretRef', message: expect.stringContaining('whsec_') }]);
    expect(JSON.stringify(faults)).not.toContain('hunter2');
    secrets = [SECRET.replace(/=$/, '')];
    expect(await check({})).toEqual([{ path: '/secretRef', message: expect.stringContaining('padded') }]);
  });
});
