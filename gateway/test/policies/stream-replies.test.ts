import { jest } from '@jest/globals';
import { createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import protobuf, { type Type } from 'protobufjs';
import type { CallContext } from 'platform/rpc/call.ts';
import { methodOptionsOf } from 'platform/rpc/method-options.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { closedInTheEnd, eventually } from 'platform/service/test-end.ts';
import type { RestMethod } from '../../src/contract/rest-methods.ts';
import type { TranscodedResponse } from '../../src/contract/transcode-response.ts';
import { streamReplies } from '../../src/policies/stream-replies.ts';
import { startGatewayFixture, TOKEN, type GatewayFixture } from '../fixture.ts';

const { root } = protobuf.parse(`
  syntax = "proto3";
  message FollowRequest {
    string path_id = 1;
    string from = 2 [(platform.v1.field).header = "Last-Event-ID"];
  }
  message FollowReply {
    string id = 1 [(platform.v1.field).header = "Last-Event-ID"];
    string text = 2;
    string value = 3 [(platform.v1.field).json = true];
  }
`);
root.resolveAll();
const codecOf = (type: Type) => ({
  serialize: (value: object) => Buffer.from(type.encode(value).finish()),
  deserialize: (bytes: Buffer) => type.toObject(type.decode(bytes), { defaults: true }),
});
const [request, reply] = [root.lookupType('FollowRequest'), root.lookupType('FollowReply')];

/** It has the path, and so the options, of a method of the contract that only reads. */
const PATH = '/credits.v1.CreditsService/GetBalance';
const follow = {
  path: PATH,
  requestStream: false,
  responseStream: true,
  requestSerialize: codecOf(request).serialize,
  requestDeserialize: codecOf(request).deserialize,
  responseSerialize: codecOf(reply).serialize,
  responseDeserialize: codecOf(reply).deserialize,
};
const route: RestMethod = {
  path: PATH,
  audience: 'memory',
  options: methodOptionsOf(PATH),
  description: 'Follows something.',
  bindings: [{ verb: 'GET', template: '/api/test/{path_id}/events', body: '', responseBody: '' }],
  requestType: request,
  responseType: reply,
  streams: true,
};
interface Asked {
  id: string;
  from: string;
}
type Event = { id?: string; text?: string; value?: string };
type Follow = (asked: Asked, context: CallContext) => AsyncIterable<Event>;

const startWith = (handler: Follow, env: Record<string, string> = {}): Promise<GatewayFixture> =>
  startGatewayFixture(
    {
      more: {
        methods: [route],
        services: [
          {
            definition: { follow },
            handlers: {
              follow: (asked: { pathId: string; from: string }, context: CallContext) =>
                handler({ id: asked.pathId, from: asked.from }, context),
            },
          },
        ],
      },
    },
    env,
  );

const URL_PATH = '/api/test/7/events';

/** A client that reads events as they come. */
function listen({ url }: Pick<GatewayFixture, 'url'>) {
  const state = { text: '', ended: false, status: 0 };
  const sent = get(url + URL_PATH, { headers: { authorization: `Bearer ${TOKEN}` } }, (response) => {
    state.status = response.statusCode!;
    response.on('data', (chunk) => (state.text += chunk));
    response.on('close', () => (state.ended = true));
    response.on('error', () => undefined);
  });
  sent.on('error', () => undefined);
  return { state, leave: () => sent.destroy() };
}

/** Serves these replies without a service, a token or a limit. */
async function serveReplies(replies: AsyncIterable<TranscodedResponse>, isStopping = false) {
  const reported: unknown[] = [];
  const [begun, cancelled] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const permit = { tryResize: () => true, resize: () => undefined };
  const server = createServer((req, res) => {
    const report = (error: unknown): string => `${reported.push(error)}`;
    const deps = { stops: new Set<() => void>(), isStopping: () => isStopping, report };
    Object.assign(req, { exchange: { headers: {}, permit } });
    void streamReplies(req as never, res, replies, cancelled.resolve, deps);
    begun.resolve();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closedInTheEnd(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, reported, begun: begun.promise, cancelled: cancelled.promise };
}
const aTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

it('a stream without replies tells its client that the connection lives, and just ends when its deadline passes', async () => {
  jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'performance', 'Date'] });
  const ended = Promise.withResolvers<void>();
  async function* silent(): AsyncGenerator<TranscodedResponse> {
    await ended.promise;
    throw new ServiceError('UNAVAILABLE', 'The deadline has passed');
  }
  const { url, reported, begun } = await serveReplies(silent());
  const { state } = listen({ url });
  await begun;
  for (const [ms, expected] of [
    [1_000, ':\n\n'],
    [15_000, ':\n\n:\n\n'],
  ] as const) {
    jest.advanceTimersByTime(ms);
    while (state.text !== expected) await aTurn();
  }
  expect(state.status).toBe(200);
  ended.resolve();
  while (!state.ended) await aTurn();
  jest.useRealTimers();
  expect([state.text, reported]).toEqual([':\n\n:\n\n', [expect.objectContaining({ reason: 'UNAVAILABLE' })]]);
});

it('a stream that begins while the gateway stops is empty: a browser would give up after another status', async () => {
  const { url } = await serveReplies(
    (async function* () {
      throw new Error('nobody reads this');
    })(),
    true,
  );
  const { state } = listen({ url });
  await eventually(() => state.ended);
  expect([state.status, state.text]).toEqual([200, '']);
});

it('a stream is cancelled when its connection closes, also during a drain', async () => {
  const ended = Promise.withResolvers<void>();
  async function* silent(): AsyncGenerator<TranscodedResponse> {
    await ended.promise;
  }
  const { url, begun, cancelled } = await serveReplies(silent());
  const { leave } = listen({ url });
  await begun;
  leave();
  await cancelled;
  ended.resolve();
});

describe('a route of a server-streaming method', () => {
  it('sends each reply as an event, with the id from which the client goes on', async () => {
    const asked: Asked[] = [];
    const fixture = await startWith(async function* (given) {
      asked.push(given);
      yield { id: '4', text: 'a\nb', value: '{"n":\n1.0}' };
      yield { id: 'é', text: '' };
      yield { text: 'c' };
    });
    const { status, headers, text } = await fixture.request(URL_PATH, { headers: { 'last-event-id': '3' } });
    expect([status, headers.get('content-type')]).toEqual([200, 'text/event-stream']);
    expect([headers.get('cache-control'), headers.get('x-request-id')]).toEqual(['no-store', expect.any(String)]);
    expect(text).toBe(
      'id: 4\ndata: {"text":"a\\nb","value":{"n": 1.0}}\n\n' +
        'data: {"text":"","value":null}\n\n' +
        'data: {"text":"c","value":null}\n\n',
    );
    expect(asked).toEqual([{ id: '7', from: '3' }]);
  });

  it('sends each event when it comes', async () => {
    const next = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const fixture = await startWith(async function* () {
      yield { text: 'first' };
      await next[0]!.promise;
      yield { text: 'second' };
      await next[1]!.promise;
    });
    const { state } = listen(fixture);
    await eventually(() => state.text.includes('first'));
    expect(state.text).not.toContain('second');
    next[0]!.resolve();
    await eventually(() => state.text.includes('second'));
    expect(state.ended).toBe(false);
    next[1]!.resolve();
    await eventually(() => state.ended);
  });

  it('answers a refusal before the first reply like every other route', async () => {
    const fixture = await startWith(async function* () {
      if (fixture) throw new ServiceError('NOT_FOUND', 'no such thing');
      yield {};
    });
    expect(await fixture.request(URL_PATH)).toMatchObject({ status: 404, json: { error: 'no such thing' } });
    expect(await fixture.request(URL_PATH, { token: 'bad' })).toMatchObject({ status: 401 });
    expect(await fixture.request(URL_PATH, { method: 'POST', body: {} })).toMatchObject({ status: 405 });
  });

  it('tells a later failure by an event, and no details of an unknown one', async () => {
    const fixture = await startWith(async function* ({ from }) {
      yield { text: 'first' };
      if (from === '') throw new ServiceError('CONFLICT', 'changed', { facts: { version: 3 } });
      throw from === '1' ? new Error('secret') : new ServiceError('UNAUTHENTICATED');
    });
    const errorOf = (text: string): object => {
      const [first, event, data] = text.split(/\n\n|\n/);
      expect([first, event]).toEqual(['data: {"text":"first","value":null}', 'event: failure']);
      return JSON.parse(data!.replace(/^data: /, ''));
    };
    const known = await fixture.request(URL_PATH);
    expect([known.status, errorOf(known.text)]).toEqual([
      200,
      { error: 'changed', code: 'conflict', version: 3, requestId: known.headers.get('x-request-id') },
    ]);
    for (const id of ['1', '2']) {
      const unknown = await fixture.request(URL_PATH, { headers: { 'last-event-id': id } });
      expect(errorOf(unknown.text)).toMatchObject({ code: 'internal', requestId: expect.any(String) });
      expect(unknown.text).not.toContain('secret');
    }
  });

  it('answers HEAD with its headers alone, and leaves the call', async () => {
    let left = 0;
    const fixture = await startWith(async function* (_asked, { signal }) {
      signal.addEventListener('abort', () => left++);
      yield { text: 'first' };
      await new Promise(() => undefined);
    });
    const { status, headers, text } = await fixture.request(URL_PATH, { method: 'HEAD' });
    expect([status, headers.get('content-type'), text]).toEqual([200, 'text/event-stream', '']);
    await eventually(() => left === 1);
  });

  it('cancels the call when the client leaves', async () => {
    const contexts: CallContext[] = [];
    const fixture = await startWith(async function* (_asked, context) {
      contexts.push(context);
      yield { text: 'first' };
      await new Promise(() => undefined);
    });
    const { state, leave } = listen(fixture);
    await eventually(() => state.text !== '');
    leave();
    await eventually(() => contexts[0]!.signal.aborted);
  });

  it('reads as fast as the client takes events, while others are served', async () => {
    let made = 0;
    const fixture = await startWith(async function* () {
      for (;;) yield (made++, { text: 'x'.repeat(10_000) });
    });
    const slow = get(fixture.url + URL_PATH, { headers: { authorization: `Bearer ${TOKEN}` } });
    slow.on('error', () => undefined);
    slow.on('response', (response) => response.pause());
    let before = -1;
    // what the sockets take has an end
    await eventually(async () => {
      const isFull = made === before && made > 0;
      before = made;
      for (let i = 0; i < 20; i++) await fixture.request('/healthz');
      return isFull;
    });
    expect((await fixture.request('/healthz')).status).toBe(200);
    slow.destroy();
  });

  it('counts among the requests that a token has under way', async () => {
    const fixture = await startWith(
      async function* () {
        yield { text: 'first' };
        await new Promise(() => undefined);
      },
      { REQUESTS_AT_ONCE: '2' },
    );
    const open = [listen(fixture), listen(fixture)];
    await eventually(() => open.every(({ state }) => state.text !== ''));
    expect(await fixture.request(URL_PATH)).toMatchObject({ status: 429, json: { code: 'too_many_requests' } });
    open[0]!.leave();
    await eventually(async () => {
      const next = listen(fixture);
      await eventually(() => next.state.status !== 0);
      next.leave();
      return next.state.status === 200;
    });
  });

  it('holds no more bytes of a token than it may: an event too many ends its stream', async () => {
    const fixture = await startWith(
      async function* () {
        for (;;) yield { text: 'x'.repeat(900_000) };
      },
      { BYTES_IN_FLIGHT: '4000000', BYTES_IN_FLIGHT_PER_TOKEN: '2000000', MAX_BODY_BYTES: '1000000' },
    );
    const neverReads = () => {
      const sent = get(fixture.url + URL_PATH, { headers: { authorization: `Bearer ${TOKEN}` } });
      sent.on('error', () => undefined);
      sent.on('response', (response) => response.pause());
      return sent;
    };
    const slow = [neverReads(), neverReads()];
    await eventually(async () => {
      const next = listen(fixture);
      await eventually(() => next.state.status !== 0);
      next.leave();
      return next.state.status === 503;
    });
    for (const one of slow) one.destroy();
    const { state, leave } = listen(fixture);
    await eventually(() => state.text.length > 3_000_000);
    leave();
  });

  it('sends no event of more than a megabyte', async () => {
    const fixture = await startWith(async function* () {
      yield { text: 'first' };
      yield { text: 'x'.repeat(1_100_000) };
    });
    const { text } = await fixture.request(URL_PATH);
    expect(text.split('\n\n')).toEqual([
      expect.stringContaining('first'),
      expect.stringContaining('reply_too_large'),
      '',
    ]);
  });

  it('ends when the gateway stops: a client that goes on elsewhere loses nothing', async () => {
    const fixture = await startWith(async function* () {
      yield { id: '1', text: 'first' };
      await new Promise(() => undefined);
    });
    const { state } = listen(fixture);
    await eventually(() => state.text !== '');
    const stopped = fixture.gateway.stop();
    await eventually(() => state.ended);
    expect(state.text).toBe('id: 1\ndata: {"text":"first","value":null}\n\n');
    await stopped;
  });

  it('is in the OpenAPI document, with the data of an event', async () => {
    const fixture = await startWith(async function* () {});
    const { json } = await fixture.request('/openapi.json', { token: '' });
    const operation = (json.paths as Record<string, Record<string, { responses: object; parameters: object }>>)[
      '/api/test/{id}/events'
    ]!.get!;
    expect(operation.responses).toMatchObject({ '200': { content: { 'text/event-stream': { schema: {} } } } });
    expect(operation.parameters).toMatchObject([
      { name: 'id', in: 'path' },
      { name: 'Last-Event-ID', in: 'header' },
    ]);
  });
});
