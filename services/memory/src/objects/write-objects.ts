import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import type { Op } from 'platform/store/store.ts';
import type { Deps } from '../deps.ts';
import { changeEvents, contentOfEvent } from '../events.ts';
import { growthOf, recordOf, type ObjectWrite } from './grouped-writes.ts';

/**
 * Writes objects of one organization in one batch, with all that belongs to them: references, fences of types, usage,
 * change events and audit entries.
 * @param given.further ops of the batch
 * @param given.check what costs more than to find that the tier has no room; runs after that
 * @throws DuplicateKeyError when a key is taken; ExpectationFailedError when an object or its type has changed;
 * ServiceError TIER_LIMIT, CLIENT_GONE
 */
export async function writeObjects(
  { groupedWrites, usage, config }: Pick<Deps, 'groupedWrites' | 'usage' | 'config'>,
  context: CallContext,
  writes: readonly ObjectWrite[],
  { further = [], check }: { further?: readonly Op[]; check?: () => Promise<void> } = {},
): Promise<void> {
  const { principal, signal } = context;
  await usage.changeObjects(organizationOfCall(context), principal, growthOf(writes));
  await check?.();
  const eventOps = writes.flatMap((write) => eventsOf(config, context, write));
  await groupedWrites({ principal, signal, writes, eventOps, further });
}

function eventsOf(config: Deps['config'], context: CallContext, write: ObjectWrite): Op[] {
  const { before, after, time, type } = write;
  const { _id: id, typeId, key, schemaVersion } = recordOf(write);
  return changeEvents(context, {
    eventType: !before ? 'memory.object.created.v1' : after ? 'memory.object.updated.v1' : 'memory.object.deleted.v1',
    id,
    revision: after?.revision ?? before!.revision + 1,
    time,
    names: { typeId, type: type.name, key, schemaVersion },
    content: contentOfEvent(after, config.MEMORY_EVENT_CONTENT_MAX_BYTES),
  });
}
