import { ServiceError } from 'platform/core/errors.ts';
import { organizationOf } from 'platform/core/principal.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import type { Deps } from '../deps.ts';
import { visibleTo, type VisibilityFilter } from '../types/rules.ts';
import type { MemoryTypeRecord } from '../types/store.ts';
import type { TypeChangeRecord } from './store.ts';

/** Reads of a type whose work begins or ends at each of them. */
const MAX_READS = 5;

export interface TypeWithChange {
  type: MemoryTypeRecord;
  change: TypeChangeRecord | undefined;
}

/** Whether both are of one moment: what is under way for a type shows in its state, unless it is a dry run. */
export const agree = ({ type, change }: TypeWithChange): boolean =>
  (type.state !== 'active') === (change?.state === 'running' && change.action !== 'dryRun');

/** The type and its last change as they were at one moment; undefined when the type is gone or may not be seen. */
export async function findWithChange(
  { types, changes }: Pick<Deps, 'types' | 'changes'>,
  { principal }: Pick<CallContext, 'principal'>,
  id: string,
  visible: VisibilityFilter = visibleTo(principal),
): Promise<TypeWithChange | undefined> {
  const organizationId = organizationOf(principal);
  for (let reads = 1; ; reads++) {
    const type = await types.byId(organizationId, id.toLowerCase(), visible);
    if (!type) return undefined;
    const found = { type, change: await changes.byType(organizationId, type._id) };
    if (agree(found) || reads === MAX_READS) return found;
  }
}

/** @throws ServiceError NOT_FOUND */
export async function requireWithChange(
  deps: Pick<Deps, 'types' | 'changes'>,
  context: CallContext,
  id: string,
  visible?: VisibilityFilter,
): Promise<TypeWithChange> {
  const found = await findWithChange(deps, context, id, visible);
  if (!found) throw new ServiceError('NOT_FOUND', 'Memory type not found');
  return found;
}
