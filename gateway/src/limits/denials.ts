import { isoTime, type Clock } from 'platform/core/clock.ts';
import { codeOf, type KnownReason } from 'platform/core/errors.ts';
import { newId } from 'platform/core/ids.ts';
import type { Log } from 'platform/core/log.ts';
import { actorOf, servicePrincipal, type Principal } from 'platform/core/principal.ts';
import { makeDenials } from 'platform/events/denials.ts';
import type { ServiceClient } from 'platform/rpc/call.ts';
import type { AuthServiceService } from 'proto/auth/v1/auth.ts';

const FLUSH_MS = 5_000;
const SELF = servicePrincipal('gateway');

export interface OwnDenials {
  note(principal: Principal, reason: KnownReason, method: string, requestId: string): void;
  close(): Promise<void>;
}

/** Counts the requests that this gateway itself denies to known principals, and tells auth for the audit trail. */
export function openDenials(
  auth: Pick<ServiceClient<typeof AuthServiceService>, 'recordDenials'>,
  clock: Clock,
  log: Log,
): OwnDenials {
  const denials = makeDenials();
  async function flush(): Promise<void> {
    const entries = denials.drain();
    if (entries.length === 0) return;
    const request = {
      denials: entries.map(({ organizationId, actor, code, target, methods = [], requestId, time, count }) => ({
        organizationId,
        actorKind: actor.kind,
        actorId: actor.id,
        actorName: actor.name,
        actorVia: actor.via,
        code,
        method: target?.id ?? '',
        methods: [...methods],
        requestId,
        time,
        count,
      })),
    };
    await auth.recordDenials(request, { principal: SELF, requestId: newId() }).catch((error: unknown) => {
      log.warn({ error: String(error) }, 'denied requests wait for the audit trail');
      for (const entry of entries) denials.note(entry);
    });
  }
  const timer = setInterval(() => void flush(), FLUSH_MS).unref();
  return {
    note(principal, reason, method, requestId) {
      denials.note({
        organizationId: principal.organizationId,
        actor: actorOf(principal),
        code: codeOf(reason),
        target: { type: 'method', id: method },
        requestId,
        time: isoTime(clock.now()),
      });
    },
    async close() {
      clearInterval(timer);
      await flush();
    },
  };
}
