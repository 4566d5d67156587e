import { jest } from '@jest/globals';
import { createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import protobuf, { type Type } from 'protobufjs';
import type { CallContext } from 'platform/rpc/call.ts';
import { methodOptionsOf } from 'platform/rpc/method-options.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { eventually } from 'platform/service/test-end.ts';
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

it('a stream without replies tells its client and what is between that the connection lives', async () => {
  jest.useFakeTimers({
    doNotFake: ['setImmediate', 'setTimeout', 'nextTick', 'queueMicrotask', 'performance', 'Date'],
  });
  const ended = Promise.withResolvers<void>();
  async function* silent(): AsyncGenerator<TranscodedResponse> {
    await ended.promise;
  }
  const begun = Promise.withResolvers<void>();
  const server = createServer((req, res) => {
    const exchange = { headers: { 'x-request-id': 'r1' } };
    const deps = { stops: new Set<() => void>(), report: () => '' };
    void streamReplies(Object.assign(req, { exchange }) as never, res, silent(), () => undefined, deps);
    begun.resolve();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { state } = listen({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
  await begun.promise;
  for (const expected of [':\n\n', ':\n\n:\n\n']) {
    jest.advanceTimersByTime(15_000);
    await eventually(() => state.text === expected);
  }
  expect(state.status).toBe(200);
  ended.resolve();
  await eventually(() => state.ended);
  jest.useRealTimers();
  await new Promise((resolve) => server.close(resolve));
});

describe('a route of a server-streaming method', () => {
  it('sends each reply as an event, with the id from which the client goes on', async () => {
    const asked: Asked[] = [];
    const fixture = await startWith(async function* (given) {
      asked.push(given);
      yield { id: '4', text: 'a\nb', value: '{"n":1.0}' };
      yield { id: 'not\nan id', text: '' };
      yield { text: 'c' };
    });
    const { status, headers, text } = await fixture.request(URL_PATH, { headers: { 'last-event-id': '3' } });
    expect([status, headers.get('content-type')]).toEqual([200, 'text/event-stream']);
    expect([headers.get('cache-control'), headers.get('x-request-id')]).toEqual(['no-store', expect.any(String)]);
    expect(text).toBe(
      'id: 4\ndata: {"text":"a\\nb","value":{"n":1.0}}\n\n' +
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
      throw from === '' ? new ServiceError('CONFLICT', 'changed', { facts: { version: 3 } }) : new Error('secret');
    });
    const errorOf = (text: string): object => {
      const [first, event, data] = text.split(/\n\n|\n/);
      expect([first, event]).toEqual(['data: {"text":"first","value":null}', 'event: error']);
      return JSON.parse(data!.replace(/^data: /, ''));
    };
    const known = await fixture.request(URL_PATH);
    expect([known.status, errorOf(known.text)]).toEqual([
      200,
      { error: 'changed', code: 'conflict', version: 3, requestId: known.headers.get('x-request-id') },
    ]);
    const unknown = await fixture.request(URL_PATH, { headers: { 'last-event-id': '1' } });
    expect(errorOf(unknown.text)).toMatchObject({ code: 'internal', requestId: expect.any(String) });
    expect(unknown.text).not.toContain('secret');
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
