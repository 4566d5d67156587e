import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { readConfig } from 'platform/core/config.ts';
import { newId } from 'platform/core/ids.ts';
import { makeLog } from 'platform/core/log.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { closedInTheEnd } from 'platform/service/test-end.ts';
import { startTraces } from 'platform/telemetry/start-traces.ts';
import { tracesConfig } from 'platform/telemetry/traces-config.ts';
import { inSpan, isTracing, openSpan, scopeOfRequest, traceparent } from 'platform/telemetry/traces.ts';

const log = makeLog('test', 'silent');
let bodies: Buffer[];
let types: string[];
/** What the collector does with a request. */
let answer: (body: Buffer) => number | undefined;
let server: Server;
let url: string;

beforeAll(async () => {
  server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const body = gunzipSync(Buffer.concat(parts));
      const status = answer(body);
      if (status === undefined) return;
      bodies.push(body);
      types.push(`${request.url} ${request.headers['content-type']}`);
      response.writeHead(status).end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closedInTheEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
beforeEach(() => {
  bodies = [];
  types = [];
  answer = () => 200;
});

const start = (env: Record<string, string> = {}, endpoint = url) =>
  startTraces(readConfig(tracesConfig, { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, ...env }), {
    service: 'test',
    instanceId: 'test-1',
    log,
  });
const ALL = { OTEL_TRACES_SAMPLER: 'parentbased_always_on' };
const SCOPE = { traceId: newId().replaceAll('-', ''), spanId: '00f067aa0ba902b7' };
const header = (flags: string): string => `00-${SCOPE.traceId}-${SCOPE.spanId}-${flags}`;
/** How many of a thousand requests with this header are sampled. */
const sampledOf = (traceparentOfCaller: string, mayAsk?: () => boolean): number =>
  Array.from({ length: 1_000 }, () => scopeOfRequest(traceparentOfCaller, newId(), mayAsk)).filter(
    ({ isSampled }) => isSampled,
  ).length;

describe('spans', () => {
  it('go to the collector as protobuf, the last of them when the process stops', async () => {
    const stop = await start(ALL);
    const requestId = newId();
    const scope = scopeOfRequest('', requestId);
    await inSpan(
      'server',
      'the outer',
      () => ({ 'a.b': 'the value' }),
      () =>
        inSpan(
          'client',
          'the inner',
          () => ({}),
          async () => {
            expect(traceparent()).toMatch(new RegExp(`^00-${scope.traceId}-[0-9a-f]{16}-01$`));
          },
        ),
      scope,
    );
    await stop();
    expect(types).toEqual(['/v1/traces application/x-protobuf']);
    const id = Buffer.from(requestId.replaceAll('-', ''), 'hex');
    expect(bodies[0]!.toString('latin1').split(id.toString('latin1'))).toHaveLength(3);
    for (const text of ['the outer', 'the inner', 'a.b', 'the value', 'test-1', 'service.name'])
      expect(bodies[0]!.includes(text)).toBe(true);
    expect(isTracing()).toBe(false);
  });

  it('tell the code of an error and never its message', async () => {
    const stop = await start({ ...ALL, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' });
    const fail = (error: Error) =>
      inSpan(
        'internal',
        'work',
        () => ({}),
        () => Promise.reject(error),
        scopeOfRequest('', newId()),
      );
    for (const error of [new ServiceError('NOT_FOUND', 'no sesame'), new TypeError('not sesame')])
      await expect(fail(error)).rejects.toThrow('sesame');
    await stop();
    const sent = bodies.map(String).join('');
    expect(sent).toContain('not_found');
    expect(sent).toContain('TypeError');
    expect(sent).not.toContain('sesame');
  });

  it('of requests that are not sampled are not made, and the work is done in the same way', async () => {
    const stop = await start({ ...ALL, OTEL_TRACES_SAMPLER: 'always_off' });
    const scope = scopeOfRequest(header('01'), newId());
    const outcome = await inSpan(
      'server',
      'work',
      () => expect(1).toBe(2) as never,
      async () => traceparent(),
      scope,
    );
    expect(outcome).toBe(header('00'));
    expect(openSpan('client', 'work', {}, scope)).toBeUndefined();
    await stop();
    expect(bodies).toEqual([]);
  });

  it('are dropped when more wait than the queue takes, and a collector that fails stops nobody', async () => {
    answer = () => 500;
    const stop = await start({ ...ALL, OTEL_BSP_MAX_QUEUE_SIZE: '10', OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '10' });
    for (let n = 0; n < 5_000; n++) openSpan('internal', `span ${n}.`, {}, scopeOfRequest('', newId()))!.end();
    await stop();
    const sent = bodies.map((body) => body.toString('latin1').match(/span \d+\./g)!.length);
    expect(sent.every((count) => count <= 10)).toBe(true);
    expect(bodies.length).toBeLessThan(5);
  });

  it('that nobody takes are given up after a second', async () => {
    answer = () => undefined;
    const patient = { ...ALL, OTEL_EXPORTER_OTLP_TIMEOUT: '1100' };
    const stop = await start(patient);
    openSpan('internal', 'work', {}, scopeOfRequest('', newId()))!.end();
    const begunAt = performance.now();
    await stop();
    // timers of Node may be a millisecond early
    expect(performance.now() - begunAt).toBeGreaterThan(990);
    const refused = await start(patient, 'http://127.0.0.1:1');
    openSpan('internal', 'work', {}, scopeOfRequest('', newId()))!.end();
    await refused();
  });
});

describe('what is sampled', () => {
  it('is decided by the caller, and by the ratio without one', async () => {
    const stop = await start({ OTEL_TRACES_SAMPLER_ARG: '0.2' });
    expect(sampledOf(header('01'))).toBe(1_000);
    expect(sampledOf(header('00'))).toBe(0);
    // 200 are expected; a binomial count is outside of these once in some billion runs
    const drawn = sampledOf('');
    expect(drawn).toBeGreaterThan(120);
    expect(drawn).toBeLessThan(290);
    await stop();
  });

  it('cannot be decided by a client beyond what it may ask for, whatever trace id it chooses', async () => {
    const stop = await start({ OTEL_TRACES_SAMPLER: 'parentbased_always_off' });
    let left = 3;
    expect(sampledOf(header('01'), () => left-- > 0)).toBe(3);
    expect(sampledOf(`00-${'0'.repeat(31)}1-${SCOPE.spanId}-01`, () => false)).toBe(0);
    await stop();
    const all = await start(ALL);
    expect(sampledOf(header('00'), () => true)).toBe(1_000);
    await all();
  });
});

describe('without an endpoint', () => {
  it('nothing is traced', async () => {
    const stop = await start({}, '');
    expect(isTracing()).toBe(false);
    expect(traceparent()).toBe('');
    expect(
      await inSpan(
        'server',
        'work',
        () => expect(1).toBe(2) as never,
        async () => 'done',
      ),
    ).toBe('done');
    await stop();
  });
});

describe('the settings', () => {
  it.each([
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'localhost:4318' },
    { OTEL_TRACES_SAMPLER_ARG: '1.5' },
    { OTEL_TRACES_SAMPLER_ARG: '-0.1' },
    { OTEL_TRACES_SAMPLER: 'traceidratio' },
    { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
    { OTEL_EXPORTER_OTLP_HEADERS: 'authorization' },
  ])('are refused when they are not what they must be: %j', (env) => {
    expect(() => readConfig(tracesConfig, env)).toThrow(Object.keys(env)[0]);
  });

  it('never show the headers of the collector', () => {
    expect(() => readConfig(tracesConfig, { OTEL_EXPORTER_OTLP_HEADERS: 'sesame' })).toThrow(/^(?!.*sesame)/s);
  });
});
