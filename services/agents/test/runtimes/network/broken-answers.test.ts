import fc from 'fast-check';
import { eventually } from 'platform/service/test-end.ts';
import type { RunRequest, RunResult, Runtime } from '../../../src/runtimes/runtime.ts';
import { requestFor } from '../request-for.ts';
import { LIMITS } from '../runners/pool-fixture.ts';
import { NO_RUNNERS, SECRET, testRuntimes } from '../test-runtimes.ts';
import { startEndpoint, type Endpoint } from './endpoint.ts';

/** What an endpoint writes, byte by byte, and whether it closes the connection then. */
interface Answer {
  text: string;
  closes: boolean;
}

const SWITCH = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n';
const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';
const CHUNKED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';

let endpoint: Endpoint;
let answers: Answer[];
beforeAll(async () => {
  endpoint = await startEndpoint((_request, _response, socket) => {
    const { text, closes } = answers[(endpoint.requests.length - 1) % answers.length]!;
    socket.on('error', () => undefined);
    socket.write(text);
    if (closes) socket.end();
  });
});
afterAll(() => endpoint.close());
beforeEach(() => void endpoint.requests.splice(0));

describe.each(['http', 'llm'] as const)('the runtime %s', (type) => {
  let runtime: Runtime;
  beforeEach(() => {
    runtime = testRuntimes(NO_RUNNERS, { secretValues: () => Promise.resolve([SECRET]) }).byType[type]!;
  });
  afterEach(() => runtime.stop());

  const run = (more: object = {}, given: Partial<RunRequest> = {}): Promise<RunResult> => {
    const definition = { http: { secretRef: 'signing' }, llm: { model: 'tested', prompt: 'Hello' } }[type];
    return runtime.run({ ...requestFor({ type, ...definition, ...{ url: endpoint.url, ...more } }), ...given });
  };
  const noneIsLeft = () => eventually(() => endpoint.connections() === 0);

  it.each<[string, string]>([
    ['switches protocols', SWITCH],
    ['does so after an interim response', CONTINUE + SWITCH],
    ['does so and goes on', `${SWITCH}\x81\x05hello`],
    ['says so without naming a protocol', 'HTTP/1.1 101 Switching Protocols\r\n\r\n'],
  ])('fails at once, and is called once, where an answer %s', async (_name, text) => {
    answers = [{ text, closes: false }];
    const whose = { http: 'agent', llm: 'model' }[type];
    expect(await run()).toMatchObject({
      outcome: 'failed',
      message: `The ${whose}'s endpoint answered with status 101`,
      usage: { calls: 1 },
    });
    await noneIsLeft();
  });

  it.each<[string, string]>([
    ['nothing', ''],
    ['half of its headers', 'HTTP/1.1 200 OK\r\nContent-Le'],
    ['an interim response', CONTINUE],
    ['half of its body', 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{"ou'],
    ['half of a chunk', `${CHUNKED}5\r\n{"`],
    ['half of its trailers', `${CHUNKED}0\r\nx: `],
    ['what is no chunk', `${CHUNKED}ZZ\r\n`],
    ['what is no HTTP', 'hello'],
  ])('ends where a connection holds %s, whether it is closed then or not', async (_name, text) => {
    answers = [{ text, closes: true }];
    expect(await run({ retries: 0 })).toMatchObject({ outcome: 'failed' });
    await noneIsLeft();
    answers = [{ text, closes: false }];
    expect(['failed', 'timed_out']).toContain(
      (await run({ retries: 0 }, { limits: { ...LIMITS, wallMs: 100 } })).outcome,
    );
    const caller = new AbortController();
    endpoint.requests.splice(0);
    const running = run({ retries: 0 }, { signal: caller.signal });
    await eventually(() => endpoint.requests.length === 1);
    caller.abort();
    expect(['failed', 'cancelled']).toContain((await running).outcome);
    await noneIsLeft();
  });

  it('ends by its limit of time, whatever its endpoint writes (property)', async () => {
    const part = fc.constantFrom(
      ...[SWITCH, CONTINUE, CHUNKED, 'HTTP/1.1 200 OK\r\n', 'HTTP/1.1 426 Upgrade Required\r\n', 'HTTP/1.1 101\r\n'],
      ...['HTTP/1.1 199 No\r\n', 'HTTP/1.0 200 OK\r\n', 'Content-Length: 2\r\n', 'Content-Length: 0\r\n', '\r\n'],
      ...[
        'Upgrade: h2c\r\n',
        'Connection: Upgrade\r\n',
        'Connection: close\r\n',
        '{}',
        '2\r\n{}\r\n',
        '0\r\n\r\n',
        '\0',
      ],
    );
    const answer = fc.record({
      text: fc.array(part, { maxLength: 6 }).map((parts) => parts.join('')),
      closes: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(answer, { minLength: 4, maxLength: 4 }), async (drawn) => {
        answers = drawn;
        const limits = { ...LIMITS, wallMs: 100 };
        const results = await Promise.all(drawn.map(() => run({ retries: 0 }, { limits })));
        for (const { outcome } of results) expect(outcome).toMatch(/^(failed|output_invalid|timed_out)$/);
      }),
      { numRuns: Number(process.env.PROPERTY_RUNS ?? 20) },
    );
    await runtime.stop();
    await noneIsLeft();
  });
});
