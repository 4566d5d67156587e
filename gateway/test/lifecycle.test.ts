import { connect } from 'node:net';
import { ServiceError } from 'platform/core/errors.ts';
import { StartError } from 'platform/core/start-error.ts';
import { startGatewayFixture, TOKEN } from './fixture.ts';
import { beginRun, RUN, slowRun } from './slow-run.ts';

describe('a client that disconnects', () => {
  it('cancels its call', async () => {
    const run = slowRun();
    const fixture = await startGatewayFixture(run.stubs);
    const leave = await beginRun(fixture, run);
    await leave();
    expect(await run.ended).toBe('cancelled');
    run.go();
    await fixture.stop();
  });
  it('cancels its call also when it has sent more requests than the gateway reads ahead', async () => {
    const run = slowRun();
    const fixture = await startGatewayFixture(run.stubs);
    const body = JSON.stringify(RUN.body);
    const socket = connect(fixture.port, '127.0.0.1');
    socket.write(
      `POST /api/agent/run HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    // written to the end: the gateway has read all but what the kernel's buffers hold
    await new Promise<void>((resolve) => {
      socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(500_000), () => resolve());
    });
    await run.begun;
    socket.destroy();
    expect(await run.ended).toBe('cancelled');
    run.go();
    await fixture.stop();
  });
  it('does not cancel a call with an Idempotency-Key, and the gateway waits for it before it stops', async () => {
    const [keyed, other] = [slowRun(), slowRun()];
    const fixture = await startGatewayFixture({
      agents: {
        runAgent: (request, context) =>
          (request.idempotencyKey === undefined ? other : keyed).stubs.agents.runAgent(request, context),
      },
    });
    const leaveKeyed = await beginRun(fixture, keyed, { 'idempotency-key': 'k' });
    await leaveKeyed();
    const leaveOther = await beginRun(fixture, other);
    await leaveOther();
    // the gateway's calls share one connection, so a cancellation of the first would have arrived before this one
    expect(await other.ended).toBe('cancelled');
    other.go();
    const stopped = fixture.stop();
    const run = keyed;
    run.go();
    expect(await run.ended).toBe('done');
    await stopped;
  });
});

it('answers 503 with Retry-After while a service is down, and 200 once it is back', async () => {
  let down = true;
  const fixture = await startGatewayFixture({
    memory: {
      listMemoryTypes: () => (down ? Promise.reject(new ServiceError('UNAVAILABLE')) : Promise.resolve({ items: [] })),
    },
  });
  const refused = await fixture.request('/api/memory/types');
  expect([refused.status, refused.json.code, refused.headers.get('retry-after')]).toEqual([503, 'unavailable', '1']);
  down = false;
  expect((await fixture.request('/api/memory/types')).status).toBe(200);
  await fixture.services.memory.drain(0);
  expect((await fixture.request('/api/memory/types')).status).toBe(503);
  expect(
    (await fixture.request('/api/memory/types', { method: 'POST', body: { type: 't', jsonSchema: {} } })).status,
  ).toBe(503);
  await fixture.stop();
});

it('reports a port in use in one sentence', async () => {
  const fixture = await startGatewayFixture({});
  const second = startGatewayFixture({}, { GATEWAY_LISTEN: `127.0.0.1:${fixture.port}` });
  await expect(second).rejects.toThrow(
    new StartError(`The address 127.0.0.1:${fixture.port} is in use by another program; GATEWAY_LISTEN sets another`),
  );
  await fixture.stop();
});
