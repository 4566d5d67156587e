import type { RecordDenialsRequest, RecordDenialsResponse } from 'proto/auth/v1/auth.ts';
import type { Deps } from '../deps.ts';

/** Counts denials of a gateway together with those of auth; the job `denials` writes both to the audit trail. */
export async function recordDenials(
  { denials }: Pick<Deps, 'denials'>,
  request: RecordDenialsRequest,
): Promise<RecordDenialsResponse> {
  for (const {
    organizationId,
    actorKind,
    actorId,
    actorName,
    actorVia,
    code,
    method,
    methods,
    requestId,
    time,
    count,
  } of request.denials)
    denials.note({
      organizationId,
      actor: { kind: actorKind, id: actorId, name: actorName, via: actorVia },
      code,
      target: { type: 'method', id: method },
      ...(methods.length > 0 && { methods }),
      requestId,
      time,
      count,
    });
  return {};
}
