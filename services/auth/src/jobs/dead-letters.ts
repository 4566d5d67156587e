import { ServiceError } from 'platform/core/errors.ts';
import type { Job } from 'platform/jobs/jobs.ts';
import { RejectedEventError } from 'platform/events/bus.ts';
import { AUDIT_GROUP, storeAuditEvents } from '../audit/consume-audit.ts';
import type { Deps } from '../deps.ts';

export const deadLettersJob = ({ bus, auditEntries }: Pick<Deps, 'bus' | 'auditEntries'>): Job => ({
  name: 'dead-letters',
  description:
    'Stores the audit events that are dead letters, oldest first, until the store fails. Skips those it rejects.',
  run: (signal) =>
    bus.replay('audit.v1', AUDIT_GROUP, async (event) => {
      signal.throwIfAborted();
      await storeAuditEvents({ auditEntries }, [event]).catch((cause: unknown) => {
        if (cause instanceof RejectedEventError) throw cause;
        throw new ServiceError(
          'INTERNAL',
          `The audit event ${event.id} failed again (${String(cause)}); it and the later ones stay dead letters`,
          { cause },
        );
      });
    }),
});
