import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { closedInTheEnd } from 'platform/service/test-end.ts';
import { traceparent, useSpanWriter, type SpanWriter } from 'platform/telemetry/traces.ts';
import { beginExchange, type GatewayRequest } from '../../src/http/exchange.ts';
import { traceRequests } from '../../src/http/traced-requests.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const OF_CLIENT = `00-${TRACE}-00f067aa0ba902b7-01`;
/** Samples only what somebody asks for. */
const writer: SpanWriter = {
  isSampled: (asked) => asked === true,
  open: (_kind, _name, _attributes, { traceId }) => ({
    scope: { traceId, spanId: 'b'.repeat(16), isSampled: true },
    ...{ rename: () => undefined, set: () => undefined, fail: () => undefined, end: () => undefined },
  }),
};

/** Answers with the traceparent that a service would get. */
async function startGateway(askedPerMinute: number): Promise<(headers?: Record<string, string>) => Promise<string>> {
  useSpanWriter(writer);
  const handle = traceRequests((_req, res) => void res.end(traceparent()), askedPerMinute);
  const server = createServer((req, res) => {
    (req as GatewayRequest).exchange = beginExchange(req, new Set());
    handle(req, res);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closedInTheEnd(() => server.close());
  closedInTheEnd(() => useSpanWriter(undefined));
  const { port } = server.address() as AddressInfo;
  return async (headers = {}) => (await fetch(`http://127.0.0.1:${port}`, { headers })).text();
}

describe('a client that asks for traces', () => {
  it('gets as many in a minute as it may, and keeps its trace id beyond that', async () => {
    const send = await startGateway(3);
    const got: string[] = [];
    for (let n = 0; n < 6; n++) got.push(await send({ traceparent: OF_CLIENT }));
    expect(got.every((scope) => scope.startsWith(`00-${TRACE}-`))).toBe(true);
    expect(got.map((scope) => scope.slice(-2))).toEqual(['01', '01', '01', '00', '00', '00']);
    // others are not affected
    expect(await send()).toMatch(/-00$/);
  });

  it('gets none where none may be asked for', async () => {
    const send = await startGateway(0);
    expect(await send({ traceparent: OF_CLIENT })).toBe(`00-${TRACE}-00f067aa0ba902b7-00`);
  });

  it('gets a trace that is named like its request when its header is not valid', async () => {
    const send = await startGateway(3);
    const id = '0192e4a0-7d5c-7000-8000-0123456789ab';
    const got = await send({ traceparent: `${OF_CLIENT}, ${OF_CLIENT}`, 'x-request-id': id });
    expect(got).toBe(`00-${id.replaceAll('-', '')}-80000123456789ab-00`);
  });
});
