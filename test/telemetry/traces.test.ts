import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { newId } from 'platform/core/ids.ts';
import { eventually } from 'platform/service/test-end.ts';
import { startOtlpReceiver, type OtlpReceiver, type ReceivedSpan } from '../support/otlp-receiver.ts';
import { REPOSITORY, startStack, type Stack } from '../support/stack.ts';
import { expressionAgent, type Tenant } from '../support/tenant.ts';

const NOTES = JSON.parse(readFileSync(join(REPOSITORY, 'examples/agents/notes.json'), 'utf8')) as object;
const NOTE = JSON.parse(readFileSync(join(REPOSITORY, 'examples/memory-types/note.json'), 'utf8')) as object;
/** Sent by a client in every place that takes text of its own. */
const CONTENTS = ['squeamish', 'ossifrage', 'mary@example.org'];
const KEY = 'key-of-the-collector';

let receiver: OtlpReceiver;
let stack: Stack;
let tenant: Tenant;
beforeAll(async () => {
  receiver = await startOtlpReceiver();
  stack = await startStack({
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_EXPORTER_OTLP_HEADERS: `x-key=${KEY}`,
      OTEL_TRACES_SAMPLER: 'parentbased_always_on',
      OTEL_BSP_SCHEDULE_DELAY: '20',
      LOG_LEVEL: 'debug',
    },
  });
  const sum = expressionAgent('sum', '$sum(numbers)');
  tenant = await stack.tenant({ credits: 100, agents: [NOTES, sum] });
  expect((await tenant.request('POST', '/api/memory/types', NOTE)).status).toBe(201);
});

const ofTrace = (traceId: string): ReceivedSpan[] => receiver.spans.filter((span) => span.traceId === traceId);
/** "gateway POST /api/agent/run" for each span of the trace, without repeats. */
const namesIn = (traceId: string): string[] => [
  ...new Set(ofTrace(traceId).map(({ service, name }) => `${service} ${name}`)),
];
/** For each batch that the service has written in the trace, the collections to which it wrote. */
const batchesIn = (spans: readonly ReceivedSpan[], service: string): string[][] =>
  spans
    .filter((span) => span.service === service && span.attributes['db.operation.name'] === 'apply')
    .map(({ name }) => name.split(' ').slice(1));
/** The parts of a trace that have no parent in it: one, when every process has sent its spans. */
function rootsOf(spans: readonly ReceivedSpan[]): ReceivedSpan[] {
  const ids = new Set(spans.map(({ spanId }) => spanId));
  return spans.filter(({ parentSpanId }) => !ids.has(parentSpanId));
}
/** The spans of the trace of this request, when it has these and is one tree below the gateway. */
async function traceWith(requestId: string, ...names: string[]): Promise<ReceivedSpan[]> {
  const traceId = requestId.replaceAll('-', '');
  // Without the gateway's own span, a trace of which one service has sent its spans has one root, too.
  await eventually(() => {
    const roots = rootsOf(ofTrace(traceId));
    const isWhole = roots.length === 1 && roots[0]!.service === 'gateway' && roots[0]!.kind === 2;
    return isWhole && names.every((name) => namesIn(traceId).includes(name));
  });
  const spans = ofTrace(traceId);
  expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length);
  return spans;
}
const lines = (): Record<string, unknown>[] =>
  stack
    .outputs()
    .flatMap((output) => output.split('\n'))
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);

describe('with a collector, and all requests sampled,', () => {
  it('a memory object that is created is one trace from the request to the audit trail', async () => {
    let headers: Headers;
    let spans: ReceivedSpan[];
    do {
      const reply = await tenant.request('POST', '/api/memory/objects', {
        type: 'note',
        key: `${CONTENTS[0]}-${newId()}`,
        content: { text: CONTENTS[1] },
      });
      expect(reply.status).toBe(201);
      ({ headers } = reply);
      spans = await traceWith(
        headers.get('x-request-id')!,
        'gateway POST /api/memory/objects',
        'gateway authenticate',
        'gateway auth.v1.AuthService/Authenticate',
        'auth auth.v1.AuthService/Authenticate',
        'gateway memory.v1.MemoryService/CreateMemoryObject',
        'memory memory.v1.MemoryService/CreateMemoryObject',
        'memory send memory.change.v1',
        'memory send audit.v1',
        'auth process audit.v1',
      );
      // What is done for several events at once is in the trace of one of them: another object, when ours had company.
    } while (
      spans.some(({ service, attributes }) => service === 'auth' && attributes['messaging.batch.message_count'])
    );
    expect(batchesIn(spans, 'memory')).toEqual([expect.arrayContaining(['objects', 'outbox'])]);
    expect(batchesIn(spans, 'auth')).toEqual([expect.arrayContaining(['audit_entries', 'audit_heads'])]);
    const [root] = spans.filter(({ name }) => name === 'POST /api/memory/objects');
    expect(root!.attributes).toEqual({
      'http.request.method': 'POST',
      'http.route': '/api/memory/objects',
      'http.response.status_code': 201,
      'url.scheme': 'http',
      'agentmemory.request.id': headers.get('x-request-id'),
      'agentmemory.organization.id': tenant.organizationId,
      'agentmemory.token.id': expect.stringMatching(/^[\da-f-]{36}$/),
    });
  });

  it('so is a run of an agent, with its credits and its tools', async () => {
    const { status, headers, body } = await tenant.request('POST', '/api/agent/run', {
      agentName: 'notes',
      args: { topic: CONTENTS[0], text: CONTENTS[2] },
    });
    expect(status).toBe(200);
    const spans = await traceWith(
      headers.get('x-request-id')!,
      'gateway POST /api/agent/run',
      'auth auth.v1.AuthService/Authenticate',
      'agents agents.v1.AgentsService/RunAgent',
      'credits credits.v1.CreditsService/Reserve',
      'credits reserve ledger',
      'agents evaluate script',
      'memory memory.v1.MemoryService/CreateMemoryObject',
      'credits credits.v1.CreditsService/Settle',
      'credits settle ledger',
      'agents send agent.execution.v1',
      'agents send audit.v1',
      'memory send audit.v1',
      'auth process audit.v1',
    );
    expect(batchesIn(spans, 'agents').flat()).toEqual(expect.arrayContaining(['executions', 'execution_payloads']));
    const execution = await tenant.request('GET', `/api/agent/executions/${body.agentExecutionId}`);
    expect(execution.body).toMatchObject({
      requestId: headers.get('x-request-id'),
      traceId: spans[0]!.traceId,
    });
    expect(batchesIn(spans, 'memory')).toEqual([expect.arrayContaining(['objects', 'outbox'])]);
  });

  it('each of many requests at once has its own trace, which has no span of another', async () => {
    const replies = await Promise.all(
      Array.from({ length: 12 }, async (_, n) =>
        tenant.request('POST', '/api/agent/run', { agentName: 'sum', args: { numbers: [n, 1] } }),
      ),
    );
    for (const { status, headers } of replies) {
      expect(status).toBe(200);
      const spans = await traceWith(
        headers.get('x-request-id')!,
        'gateway authenticate',
        'agents agents.v1.AgentsService/RunAgent',
        'agents write in a group',
        'credits settle ledger',
        'auth process audit.v1',
      );
      const requests = new Set(spans.flatMap(({ attributes }) => attributes['agentmemory.request.id'] ?? []));
      expect([...requests]).toEqual([headers.get('x-request-id')]);
      expect(spans.filter(({ service, name }) => service === 'agents' && name.startsWith('evaluate'))).toHaveLength(1);
    }
  });

  it('the request id of an error leads to its trace and to the lines of all logs, which have its ids', async () => {
    const { status, body, headers } = await tenant.request('GET', `/api/memory/objects/${newId()}`);
    expect(status).toBe(404);
    const { requestId } = body as { requestId: string };
    expect(headers.get('x-request-id')).toBe(requestId);
    const traceId = requestId.replaceAll('-', '');
    const spans = await traceWith(requestId, 'memory memory.v1.MemoryService/GetMemoryObject');
    const failed = spans.filter(({ attributes }) => attributes['error.type'] !== undefined);
    expect(failed.map(({ service, attributes }) => [service, attributes['error.type']])).toEqual(
      expect.arrayContaining([
        ['gateway', 'not_found'],
        ['memory', 'not_found'],
      ]),
    );
    expect(failed.filter(({ isError }) => isError)).toEqual([]);

    await eventually(() => lines().some((line) => line.requestId === requestId && line.service === 'gateway'));
    const found = lines().filter((line) => line.requestId === requestId && line.code === 'not_found');
    expect(found.map(({ service }) => service).sort()).toEqual(['gateway', 'memory']);
    const token = spans.find(({ name }) => name.startsWith('GET '))!.attributes['agentmemory.token.id'];
    for (const line of found)
      expect(line).toMatchObject({ traceId, organizationId: tenant.organizationId, tokenId: token });
  });

  it('a request id that is no UUID is an attribute of the trace, whose id the log has', async () => {
    const requestId = `ours.${newId().slice(-12)}`;
    await tenant.request('GET', '/api/memory/types', undefined, { 'X-Request-Id': requestId });
    const ofRequest = () => receiver.spans.filter(({ attributes: a }) => a['agentmemory.request.id'] === requestId);
    await eventually(() =>
      ['gateway', 'auth', 'memory'].every((name) => ofRequest().some(({ service }) => service === name)),
    );
    const traces = new Set(ofRequest().map(({ traceId }) => traceId));
    expect(traces.size).toBe(1);
    const found = lines().filter((line) => line.requestId === requestId);
    expect(new Set(found.map(({ traceId }) => traceId))).toEqual(traces);
  });

  it('a client that sends traceparent gives the trace its id', async () => {
    const [traceId, spanId] = [newId().replaceAll('-', ''), '00f067aa0ba902b7'];
    await tenant.request('GET', '/api/memory/types', undefined, { traceparent: `00-${traceId}-${spanId}-01` });
    await eventually(() => namesIn(traceId).includes('gateway GET /api/memory/types'));
    const [root] = ofTrace(traceId).filter(({ parentSpanId }) => parentSpanId === spanId);
    expect(root).toMatchObject({ service: 'gateway', kind: 2 });
  });

  it('no background work that a request has started is in its trace', () => {
    // the relay was started by each of the changes above, and reads the outbox
    expect(receiver.spans.some(({ name }) => name.startsWith('apply') && name.endsWith(' outbox'))).toBe(true);
    expect(receiver.spans.filter(({ name }) => /^(find|count) (outbox|leases)$/.test(name))).toEqual([]);
  });

  it('nothing that a client sends, and no secret, is sent to the collector or logged', async () => {
    // what is refused, what fails and what is searched for would be quoted first
    await tenant.request('POST', '/api/memory/objects', { type: 'note', content: { text: 1, [CONTENTS[1]!]: 2 } });
    await tenant.request('POST', '/api/agent/run', { agentName: CONTENTS[0], args: { text: CONTENTS[1] } });
    const last = await tenant.request('GET', `/api/memory/objects?type=note&key=${CONTENTS[0]}`);
    await traceWith(last.headers.get('x-request-id')!, 'gateway GET /api/memory/objects', 'memory find objects');
    const texts = [...receiver.received.map(({ text }) => text), ...stack.outputs()];
    expect(receiver.received.every(({ key }) => key === KEY)).toBe(true);
    const secret = [tenant.token, tenant.administrator, tenant.name, KEY, ...CONTENTS];
    expect(secret.filter((one) => texts.some((text) => text.includes(one)))).toEqual([]);
    const attributes = new Set(receiver.spans.flatMap(({ attributes: each }) => Object.keys(each)));
    expect([...attributes].filter((name) => /url\.(path|query|full)|address|user|body|text|email/.test(name))).toEqual(
      [],
    );
  });
});
