import { MAX_EVENT_BYTES, TOPICS, type CloudEvent } from 'platform/events/bus.ts';
import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { CreditsServiceService } from 'proto/credits/v1/credits.ts';
import { newId } from 'platform/core/ids.ts';
import { eventsOf, type EventRecords } from '../support/event-records.ts';
import { eventually } from 'platform/service/test-end.ts';
import { request } from '../support/request.ts';
import { startStack, type Stack } from '../support/stack.ts';
import { expressionAgent } from '../support/tenant.ts';

const KEY_LENGTH = 1_024;
const WIDE = '😀';
const RELAYS = ['auth', 'agents', 'memory', 'credits'] as const;
const bytesOf = (event: CloudEvent): number => Buffer.byteLength(JSON.stringify(event));

describe('events of requests in which everything has its maximum length', () => {
  let stack: Stack;
  beforeAll(async () => {
    stack = await startStack({ env: { MEMORY_KEY_MAX_LENGTH: String(KEY_LENGTH) } });
  });
  afterAll(() => stack.stop());

  it('carry names and no content: the largest event is far below the limit of every broker', async () => {
    const name = `a${'z'.repeat(63)}`;
    const tenant = await stack.tenant({
      credits: 10,
      agents: [
        expressionAgent(name, '{"text": $pad(text, 90000)}'),
        expressionAgent(`b${'z'.repeat(63)}`, '$error(text)'),
      ],
    });
    const auth = stack.operator.client(AuthServiceService, 'auth');
    const { principal } = await auth.assumeUser(
      { email: tenant.administrator },
      stack.operator.as(tenant.organizationId),
    );
    const { value: token } = await auth.createServerToken(
      { name: WIDE.repeat(100), expiresAt: undefined },
      stack.operator.asPrincipal(principal as never),
    );
    await stack.operator
      .client(CreditsServiceService, 'credits')
      .grant({ id: newId(), amountMicros: 1e15, note: '€'.repeat(200) }, stack.operator.as(tenant.organizationId));
    const send = async (status: number, path: string, body: object): Promise<void> => {
      const reply = await request(stack.baseUrl, 'POST', path, {
        token,
        body,
        headers: { 'X-Request-Id': 'r'.repeat(64) },
      });
      expect({ path, status: reply.status, text: reply.text }).toEqual({ path, status, text: expect.any(String) });
    };
    const text = 'content '.repeat(10_000);
    const type = `t${'z'.repeat(63)}`;
    await send(201, '/api/memory/types', {
      type,
      displayName: WIDE.repeat(50),
      jsonSchema: { type: 'object', description: 'content '.repeat(5_000) },
    });
    await send(201, '/api/memory/objects', { type, key: WIDE.repeat(KEY_LENGTH), content: { text } });
    await send(200, '/api/agent/run', { agentName: name, args: { text } });
    await send(500, '/api/agent/run', { agentName: `b${'z'.repeat(63)}`, args: { text } });
    await send(404, '/api/agent/run', { agentName: WIDE.repeat(1_000), args: {} });

    for (const service of RELAYS) if (service !== 'credits') await stack.runJob(service, 'denials');
    for (const service of RELAYS) await stack.runJob(service, 'relay');
    const isComplete = ({ events }: EventRecords) =>
      TOPICS.every((topic) => events[topic].length > 0) &&
      events['memory.change.v1'].length === 2 &&
      events['credits.ledger.v1'].length >= 6;
    const { events } = await eventually(async () => {
      const found = await eventsOf(stack, tenant);
      return isComplete(found) && found;
    });
    const largest = TOPICS.map((topic) => Math.max(...events[topic].map(bytesOf)));
    process.stdout.write(`largest events: ${TOPICS.map((topic, i) => `${topic} ${largest[i]} bytes`).join(', ')}\n`);
    expect(Math.max(...largest)).toBeGreaterThan(4 * KEY_LENGTH);
    expect(Math.max(...largest)).toBeLessThan(MAX_EVENT_BYTES / 4);
    expect(JSON.stringify(events)).not.toContain('content content');
  });
});
