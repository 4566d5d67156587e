import { join } from 'node:path';
import fc from 'fast-check';
import { isoTime } from 'platform/core/clock.ts';
import type { CloudEvent } from 'platform/events/bus.ts';
import { auditEntryOp } from 'platform/events/outbox.ts';
import { newId } from 'platform/core/ids.ts';
import type { OpenStore } from 'platform/store/store.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { openTestStore } from '../../../test/support/shared-engines.ts';
import { storeAuditEvent } from '../src/audit/consume-audit.ts';
import { AUDIT_ENTRIES, openAuditEntries, type AuditEntries } from '../src/audit/store.ts';

const folder = temporaryFolder();
let opened: OpenStore;
let auditEntries: AuditEntries;
beforeAll(async () => {
  opened = await openTestStore(join(folder.path, 'auth.db'), [AUDIT_ENTRIES]);
  auditEntries = openAuditEntries(opened.store, opened.platformStore);
});
afterAll(async () => {
  await opened.close();
  folder.remove();
});

/** An audit event, as the outbox of a service holds it. */
function auditEvent(
  organizationId: string,
  given: { target?: { type: string; id: string }; code?: string; count?: number },
): CloudEvent {
  const op = auditEntryOp({
    source: '/memory',
    organizationId,
    action: 'memory_type.create',
    outcome: 'success',
    actor: { kind: 'user', id: 'u1', name: 'ada', via: '' },
    requestId: 'r1',
    time: isoTime(Date.now()),
    ...given,
  });
  if (op.kind !== 'insert') throw new Error('auditEntryOp must be an insert');
  return JSON.parse((op.document as unknown as { event: string }).event) as CloudEvent;
}

describe('the consumer of audit events', () => {
  it('stores each event once, in whatever order and however often it is delivered', async () => {
    const delivery = fc.array(
      fc.record({ repeats: fc.integer({ min: 1, max: 3 }), targeted: fc.boolean(), rank: fc.nat() }),
      { minLength: 1, maxLength: 20 },
    );
    await fc.assert(
      fc.asyncProperty(delivery, async (plan) => {
        const organizationId = newId();
        const events = plan.map(({ targeted }, index) =>
          auditEvent(
            organizationId,
            targeted ? { target: { type: 'memory_type', id: `m${index}` } } : { code: 'forbidden', count: index + 1 },
          ),
        );
        const deliveries = events.flatMap((event, index) =>
          Array.from({ length: plan[index]!.repeats }, (_, n) => ({
            event,
            rank: (plan[index]!.rank * (n + 7)) % 101,
          })),
        );
        deliveries.sort((a, b) => a.rank - b.rank);
        await Promise.all(deliveries.map(({ event }) => storeAuditEvent({ auditEntries }, event)));
        const trail = await auditEntries.list(organizationId, '', '', 100);
        expect(trail.map(({ _id }) => _id)).toEqual(events.map(({ id }) => id).reverse());
        expect(trail.map(({ targetId, code, count }) => ({ targetId, code, count })).reverse()).toEqual(
          plan.map(({ targeted }, index) =>
            targeted
              ? { targetId: `m${index}`, code: null, count: 1 }
              : { targetId: null, code: 'forbidden', count: index + 1 },
          ),
        );
      }),
      { numRuns: 50 },
    );
  });

  it('rejects an event that lacks a field', async () => {
    const event = auditEvent(newId(), {});
    await expect(
      storeAuditEvent({ auditEntries }, { ...event, data: { ...event.data, action: undefined } }),
    ).rejects.toThrow(TypeError);
  });
});
