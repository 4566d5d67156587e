import type { ServerResponse } from 'node:http';
import { compileSchema } from 'platform/json-schema/schema.ts';
import { eventually } from 'platform/service/test-end.ts';
import type { RunRequest, Runtime } from '../../../src/runtimes/runtime.ts';
import { answerWith, startEndpoint, type Endpoint, type EndpointRequest } from '../network/endpoint.ts';
import { requestFor } from '../request-for.ts';
import { LIMITS } from '../runners/pool-fixture.ts';
import { NO_RUNNERS, testRuntimes } from '../test-runtimes.ts';
import { chatOf, completionOf, say } from './model-server.ts';

const API_KEY = 'sk-the-key-of-this-test';

let answer: (response: ServerResponse, request: EndpointRequest) => void;
let endpoint: Endpoint;
let runtime: Runtime;
let secrets: string[];
const opened: Runtime[] = [];
const open = (networks?: string[]): Runtime => {
  const secretValues = () => Promise.resolve(secrets);
  const made = testRuntimes(NO_RUNNERS, { secretValues, ...(networks && { networks }) }).byType['llm']!;
  opened.push(made);
  return made;
};
beforeEach(async () => {
  secrets = [API_KEY];
  endpoint = await startEndpoint((request, response) => answer(response, request));
  runtime = open();
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((made) => made.stop()));
  await endpoint.close();
});

const agent = (more: object = {}) => ({
  type: 'llm',
  ...{ url: `${endpoint.url}/v1`, model: 'tested-model', secretRef: 'api-key', prompt: '{{args.text}}', ...more },
});
const run = (
  more: object = {},
  { args = { text: 'hello' }, ...given }: Partial<RunRequest> & { args?: unknown } = {},
) => runtime.run({ ...requestFor(agent(more), args), ...given });
const check = (more: object) => runtime.check('one', agent(more));

/** A run whose output must match this schema. */
const runBySchema = (schema: Record<string, unknown>) => {
  const compiled = compileSchema(JSON.stringify(schema));
  const checkOutput = (text: string) => Promise.resolve(compiled.validate(JSON.parse(text)));
  return run({}, { outputSchema: schema, checkOutput });
};
const TOTAL = { type: 'object', required: ['total'], properties: { total: { type: 'integer' } } };

describe('a call', () => {
  it('carries the filled templates, the settings of the definition, and the key', async () => {
    answer = (response) => say(response, 'a sum');
    const settings = { system: 'For {{args.who.name}}.', prompt: '{{ args.list.1 }}/{{args}}', temperature: 0.5 };
    const result = await run(
      { ...settings, maxOutputTokens: 77 },
      { args: { who: { name: 'Ann' }, list: [1, { b: '{{args}}' }] } },
    );
    expect(result).toMatchObject({
      outcome: 'succeeded',
      outputText: '"a sum"',
      messages: [],
      usage: { calls: 1, tokensIn: 10, tokensOut: 5 },
    });
    const [{ path, headers, body }] = endpoint.requests as [EndpointRequest];
    expect(path).toBe('/v1/chat/completions');
    expect(headers.authorization).toBe(`Bearer ${API_KEY}`);
    expect(chatOf({ body })).toEqual({
      model: 'tested-model',
      temperature: 0.5,
      max_tokens: 77,
      messages: [
        { role: 'system', content: 'For Ann.' },
        { role: 'user', content: '{"b":"{{args}}"}/{"who":{"name":"Ann"},"list":[1,{"b":"{{args}}"}]}' },
      ],
    });
  });

  it('needs no key where the definition names none', async () => {
    answer = (response) => say(response, 'yes');
    secrets = [];
    expect(await run({ secretRef: undefined })).toMatchObject({ outcome: 'succeeded' });
    expect(endpoint.requests[0]!.headers).not.toHaveProperty('authorization');
  });

  it.each([[[]], [['two\nlines']], [['ключ']]])(
    'is not made with %j as its secret, which no message shows',
    async (values) => {
      secrets = values;
      const result = await run();
      expect(result).toMatchObject({ outcome: 'failed', usage: { calls: 0, tokensIn: 0, tokensOut: 0 } });
      expect(JSON.stringify(result)).not.toContain(values[0] ?? 'nothing');
      expect(endpoint.requests).toEqual([]);
    },
  );

  it('is not made when the prompt becomes too long, however often the args are put in', async () => {
    const prompt = '{{args.text}}'.repeat(5_000);
    expect(await run({ prompt }, { args: { text: 'x'.repeat(250_000) } })).toMatchObject({
      outcome: 'failed',
      message: 'The prompt has more than 1048576 characters',
    });
    expect(endpoint.requests).toEqual([]);
  });

  it.each(['__proto__', 'constructor', 'toString', 'text.length'])(
    'puts nothing in for %s, which the args lack',
    async (name) => {
      answer = (response) => say(response, 'yes');
      await run({ prompt: `[{{args.${name}}}]` });
      expect(chatOf(endpoint.requests[0]!).messages[0]!.content).toBe('[]');
    },
  );
});

describe('an output schema', () => {
  it('goes with the call, and the answer becomes the output', async () => {
    answer = (response) => say(response, '{ "total": 3.0 }');
    expect(await runBySchema(TOTAL)).toMatchObject({ outcome: 'succeeded', outputText: '{"total":3.0}' });
    const { response_format } = chatOf(endpoint.requests[0]!);
    expect(response_format).toMatchObject({ type: 'json_schema', json_schema: { schema: TOTAL, strict: false } });
  });

  it.each([
    ['is prose', 'The total is three.', 'not JSON'],
    ['breaks it', '{"total":"three"}', '/total must be integer'],
  ])('an answer that %s is repaired once, and both calls are counted', async (_name, wrong, told) => {
    answer = (response) => say(response, endpoint.requests.length === 1 ? wrong : '{"total":3}');
    expect(await runBySchema(TOTAL)).toMatchObject({
      outcome: 'succeeded',
      outputText: '{"total":3}',
      messages: [],
      usage: { calls: 2, tokensIn: 20, tokensOut: 10 },
    });
    const [, assistant, user] = chatOf(endpoint.requests[1]!).messages;
    expect(assistant).toEqual({ role: 'assistant', content: wrong });
    expect(user!.content).toContain(told);
  });

  it('a second answer that breaks it is the output, which the service refuses', async () => {
    answer = (response) => say(response, '{"total":"three"}');
    expect(await runBySchema(TOTAL)).toMatchObject({ outcome: 'succeeded', outputText: '{"total":"three"}' });
    expect(endpoint.requests).toHaveLength(2);
  });

  it('a second answer that is not JSON fails the run, and its messages show both', async () => {
    answer = (response) => say(response, `no ${endpoint.requests.length}`);
    expect(await run({}, { outputSchema: TOTAL, trace: true })).toMatchObject({
      outcome: 'failed',
      message: "The model's answer is not JSON",
      messages: [{ parts: [{ text: 'no 1' }] }, { parts: [{ text: 'no 2' }] }],
    });
  });
});

describe('an answer', () => {
  const HINT = 'text of the provider';
  const NOT_A_COMPLETION = "The model's endpoint gave no chat completion";
  const withMessage = (message: object) =>
    completionOf(HINT, { choices: [{ index: 0, finish_reason: 'stop', message }] });
  it.each<[string, (response: ServerResponse) => void, string]>([
    ['refuses the key', (response) => answerWith(response, { error: { message: HINT } }, 401), 'status 401'],
    ['knows no such model', (response) => answerWith(response, { error: { message: HINT } }, 404), 'status 404'],
    ['redirects', (response) => void response.writeHead(307, { location: endpoint.url }).end(HINT), 'status 307'],
    ['is not JSON', (response) => void response.end(`<html>${HINT}`), NOT_A_COMPLETION],
    ['is empty', (response) => void response.end(), NOT_A_COMPLETION],
    ['is cut off', (response) => void response.end(JSON.stringify(completionOf(HINT)).slice(0, -9)), NOT_A_COMPLETION],
    ['has no choices', (response) => say(response, HINT, { choices: [] }), NOT_A_COMPLETION],
    ['has choices of another type', (response) => say(response, HINT, { choices: HINT }), NOT_A_COMPLETION],
    ['has a text of another type', (response) => say(response, { text: HINT }), NOT_A_COMPLETION],
    ['is nested without end', (response) => void response.end('{"choices":'.padEnd(900_000, '[')), NOT_A_COMPLETION],
    ['is a list', (response) => answerWith(response, [HINT]), NOT_A_COMPLETION],
    ['was cut off at its limit', (response) => say(response, HINT, { finish_reason: 'length' }), 'limit of tokens'],
    ['was filtered', (response) => say(response, HINT, { finish_reason: 'content_filter' }), 'withheld by a filter'],
    ['is too large', (response) => void response.end(' '.repeat(4_000_000)), 'is too large'],
    [
      'calls a tool that it does not have',
      (response) => {
        const tool_calls = [{ id: 'a', type: 'function', function: { name: 'rm', arguments: '{' } }];
        const message = { role: 'assistant', content: null, tool_calls };
        answerWith(response, completionOf('', { choices: [{ index: 0, finish_reason: 'tool_calls', message }] }));
      },
      'called a tool',
    ],
  ])('that %s fails the run after one call, and shows nothing of itself', async (_name, respond, message) => {
    answer = (response) => respond(response);
    const result = await run();
    expect(result).toMatchObject({ outcome: 'failed', message: expect.stringContaining(message), usage: { calls: 1 } });
    expect(JSON.stringify(result)).not.toContain(HINT);
    expect(endpoint.requests).toHaveLength(1);
  });

  it('never makes the service fetch what it points to', async () => {
    const image = { type: 'image_url', image_url: { url: `${endpoint.url}/image.png` } };
    answer = (response) => answerWith(response, withMessage({ role: 'assistant', content: 'text', images: [image] }));
    await run();
    expect(endpoint.requests.map(({ path }) => path)).toEqual(['/v1/chat/completions']);
  });

  it('keeps the key out of the messages', async () => {
    answer = (response) => say(response, `you sent ${API_KEY}`);
    expect(await run({}, { trace: true })).toMatchObject({ messages: [{ parts: [{ text: 'you sent [redacted]' }] }] });
  });

  it('may be as large as the output may be, and no larger', async () => {
    answer = (response) => say(response, 'é'.repeat(1_000));
    const limits = (outputBytes: number) => ({ limits: { ...LIMITS, outputBytes } });
    expect(await run({}, limits(2_002))).toMatchObject({ outcome: 'succeeded' });
    expect(await run({}, limits(2_001))).toMatchObject({ message: 'The output is larger than 2001 bytes' });
  });
});

describe('a failure that may pass', () => {
  it.each([429, 500, 502, 503, 529])(
    'status %d: the call is repeated, and only the answer costs tokens',
    async (status) => {
      answer = (response) =>
        endpoint.requests.length < 3
          ? answerWith(response, { error: { message: 'busy' } }, status)
          : say(response, 'ok');
      expect(await run()).toMatchObject({
        outcome: 'succeeded',
        usage: { calls: 3, tokensIn: 10, tokensOut: 5 },
      });
    },
  );

  it('fails the run when it does not pass, without tokens', async () => {
    answer = (response) => answerWith(response, { error: { message: 'over quota' } }, 429);
    expect(await run({ retries: 1 })).toEqual({
      outcome: 'failed',
      message: "The model's endpoint answered with status 429",
      messages: [],
      usage: { calls: 2, tokensIn: 0, tokensOut: 0 },
    });
  });
});

describe('tokens', () => {
  it.each([
    ['no usage', undefined],
    ['a usage of null', null],
    ['a negative usage', { prompt_tokens: -1, completion_tokens: -1 }],
    ['half a token', { prompt_tokens: 0.5, completion_tokens: 0.5 }],
    ['more than there can be', { prompt_tokens: 1e300, completion_tokens: 1e12 }],
  ])('are estimated from the texts when the endpoint reports %s', async (_name, usage) => {
    answer = (response) => say(response, 'x'.repeat(400), { usage });
    const result = await run({ prompt: 'y'.repeat(4_000) });
    expect(result).toMatchObject({ outcome: 'succeeded', usage: { tokensOut: 100 } });
    const { tokensIn } = 'usage' in result ? result.usage : {};
    expect(tokensIn).toBe(Math.ceil(endpoint.requests[0]!.body.length / 4));
  });

  it.each(['cancelled', 'timed_out'] as const)('that were sent count when the run is %s', async (outcome) => {
    answer = () => undefined;
    const caller = new AbortController();
    const limits = { ...LIMITS, wallMs: outcome === 'timed_out' ? 1_000 : 60_000 };
    const running = run({ prompt: 'y'.repeat(4_000) }, { signal: caller.signal, limits });
    await eventually(() => endpoint.requests.length === 1);
    if (outcome === 'cancelled') caller.abort();
    expect(await running).toMatchObject({ outcome, usage: { calls: 1, tokensIn: expect.any(Number), tokensOut: 0 } });
    const result = await running;
    expect('usage' in result && result.usage.tokensIn! > 1_000).toBe(true);
    await eventually(() => endpoint.connections() === 0);
  });
});

describe('a definition', () => {
  it.each<[object, string, string]>([
    [{ prompt: 'Hello {{name}}' }, '/prompt', '{{name}} must be {{args}}'],
    [{ system: '{{args.}}' }, '/system', '{{args.}} must be'],
    [{ url: 'http://93.184.215.14/v1' }, '/url', 'https:// URL, or in one of the networks that AGENT_NETWORKS'],
    [{ url: 'https://10.0.0.1/v1' }, '/url', 'private network, unless AGENT_NETWORKS'],
    [{ url: 'ftp://example.com/' }, '/url', 'https'],
    [{ temperature: 3 }, '/temperature', 'must be <= 2'],
    [{ tools: [] }, '/tools', 'is not allowed'],
  ])('with %j is refused', async (more, path, words) => {
    expect(await check(more)).toEqual([{ path, message: expect.stringContaining(words) }]);
  });

  it('needs its secret, of characters that a header may carry', async () => {
    secrets = [];
    expect(await check({})).toEqual([
      { path: '/secretRef', message: expect.stringContaining('npm run admin -- --organization <name> secret set') },
    ]);
    secrets = ['two\nlines'];
    const faults = await check({});
    expect(faults).toEqual([{ path: '/secretRef', message: expect.stringContaining('ASCII') }]);
    expect(JSON.stringify(faults)).not.toContain('two');
  });

  it('may not call private networks that are not listed', async () => {
    runtime = open([]);
    const refused = await check({ url: 'https://169.254.169.254/v1' });
    expect(refused).toEqual([{ path: '/url', message: expect.any(String) }]);
    expect(await run({ url: 'https://localhost/v1' })).toMatchObject({
      outcome: 'failed',
      message: "The model's endpoint is at an address that may not be called",
    });
  });
});
