import { ListMemoryObjectsRequest, MemoryServiceService } from 'proto/memory/v1/memory.ts';
import type { ServiceError } from 'platform/core/errors.ts';
import { retryWhileUnavailable } from '../../../test/support/retry-while-unavailable.ts';
import { startMemory, type Memory } from './fixture.ts';

const CONTENT = JSON.stringify({ price: 1, text: 'x'.repeat(262_000) });
const OBJECTS = 50;
const GATEWAY_BYTES = 65_536;
const LARGE_READS = 4;

let memory: Memory;
beforeAll(async () => {
  memory = await startMemory();
});
afterAll(() => memory.stop());

describe('lists of large objects', () => {
  it('that their callers do not take are refused, and a neighbour is answered before half of 40 at once', async () => {
    const greedy = memory.organization();
    const neighbour = memory.organization();
    const { id: typeId } = await greedy.type();
    const small = await neighbour.object({ typeId: (await neighbour.type()).id });
    // one by one: on a disk that stalls, all of them at once may take longer than the deadline of each
    for (let i = 0; i < OBJECTS; i++) await greedy.object({ typeId, content: CONTENT });
    const client = memory.running.client(MemoryServiceService, 'gateway');
    // a machine that stalls may let the deadline of a read pass
    const list = (maxReplyBytes: number) =>
      retryWhileUnavailable(() =>
        client.listMemoryObjects(ListMemoryObjectsRequest.fromPartial({ typeId, pageSize: OBJECTS }), {
          ...memory.running.as(greedy.principal),
          maxReplyBytes,
        }),
      );

    // What the error names is enough for a second attempt.
    const refusal: unknown = await list(GATEWAY_BYTES).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ reason: 'REPLY_TOO_LARGE' });
    const enough = Number((refusal as ServiceError).facts.bytes);
    expect(enough).toBeGreaterThan(OBJECTS * CONTENT.length);
    const { items, total } = await list(enough);
    expect(total).toBe(OBJECTS);
    expect(items.map(({ content }) => content)).toEqual(Array.from({ length: OBJECTS }, () => CONTENT));

    // More are read than have room in the gateway at once; the rest is refused.
    const outcomes: string[] = [];
    const flood = Array.from({ length: 40 }, async (_, i) => {
      const outcome = await list(i < LARGE_READS ? enough : GATEWAY_BYTES).then(
        () => 'read',
        (error: ServiceError) => error.reason,
      );
      outcomes.push(outcome);
    });
    const readBefore: number[] = [];
    for (let i = 0; i < 3; i++) {
      expect((await retryWhileUnavailable(() => neighbour.getObject(small.id))).id).toBe(small.id);
      readBefore.push(outcomes.filter((outcome) => outcome !== 'REPLY_TOO_LARGE').length);
    }
    await Promise.all(flood);
    expect(Math.max(...readBefore)).toBeLessThan(LARGE_READS / 2);
    expect(outcomes.filter((outcome) => outcome === 'REPLY_TOO_LARGE')).toHaveLength(40 - LARGE_READS);
    expect(outcomes).toHaveLength(40);
  });
});
