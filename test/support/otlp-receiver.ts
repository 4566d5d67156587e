import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { closedInTheEnd } from 'platform/service/test-end.ts';

interface Attribute {
  key: string;
  value: { stringValue?: string; intValue?: number };
}
interface ResourceSpans {
  resource: { attributes: Attribute[] };
  scopeSpans: {
    spans: {
      traceId: string;
      spanId: string;
      parentSpanId?: string;
      name: string;
      kind: number;
      attributes: Attribute[];
      status: { code?: number };
    }[];
  }[];
}

/** A span as a collector sees it. */
export interface ReceivedSpan {
  service: string;
  traceId: string;
  spanId: string;
  parentSpanId: string;
  name: string;
  /** 1 internal, 2 server, 3 client, 4 producer, 5 consumer. */
  kind: number;
  attributes: Readonly<Record<string, string | number | undefined>>;
  isError: boolean;
}

export interface OtlpReceiver {
  url: string;
  /** Those that came as JSON. */
  spans: readonly ReceivedSpan[];
  /** Every request that came: its content type, the header `x-key`, and its body as text. */
  received: { contentType: string; key: string; text: string }[];
}

/**
 * A collector that takes spans as OTLP/JSON.
 * @param given.isSilent it takes requests and never answers them
 */
export async function startOtlpReceiver({ isSilent = false } = {}): Promise<OtlpReceiver> {
  const received: OtlpReceiver['received'] = [];
  const spans: ReceivedSpan[] = [];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const text = gunzipSync(Buffer.concat(parts)).toString('latin1');
      received.push({ contentType: request.headers['content-type']!, key: String(request.headers['x-key']), text });
      if (request.headers['content-type'] === 'application/json') spans.push(...spansIn(text));
      if (!isSilent) response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closedInTheEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    spans,
  };
}

const spansIn = (text: string): ReceivedSpan[] =>
  (JSON.parse(text) as { resourceSpans: ResourceSpans[] }).resourceSpans.flatMap(spansOf);

function spansOf({ resource, scopeSpans }: ResourceSpans): ReceivedSpan[] {
  const service = String(valuesOf(resource.attributes)['service.name']);
  return scopeSpans.flatMap(({ spans }) =>
    spans.map(({ traceId, spanId, parentSpanId = '', name, kind, attributes, status }) => ({
      ...{ service, traceId, spanId, parentSpanId, name, kind },
      attributes: valuesOf(attributes),
      isError: status.code === 2,
    })),
  );
}

const valuesOf = (attributes: readonly Attribute[]): ReceivedSpan['attributes'] =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue]));
