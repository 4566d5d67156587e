import type { CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { newId } from 'platform/core/ids.ts';
import { requireScope } from 'platform/core/principal.ts';
import { withTimeout } from 'platform/core/with-timeout.ts';
import { ExpectationFailedError, update, type Op } from 'platform/store/store.ts';
import type { Deps } from '../deps.ts';
import { asRead, TYPES, type MemoryTypeRecord } from '../types/store.ts';
import { carryOut } from './carry-out.ts';
import { nextFields, startOp, TYPE_CHANGES, type TypeChangeRecord } from './store.ts';

/** Of one organization: each holds the fields of a type, and reads objects. */
const MAX_RUNNING = 8;
/** Left of the deadline of a call when the caller is told that the work goes on. */
const ANSWER_MS = 2_000;

type Needs = Parameters<typeof carryOut>[0] & Pick<Deps, 'background' | 'instanceId'>;

interface Work extends Pick<TypeChangeRecord, 'action' | 'of'> {
  before: MemoryTypeRecord;
  /** The type as it is to be; absent for a deletion. */
  after?: MemoryTypeRecord;
  force?: boolean;
  /** Further ops of the batch. */
  ops?: readonly Op[];
}

/**
 * Announces the work: from now on every process that reads the type sees that it changes or is deleted, and `carryOut`
 * makes sure that no write of an object commits that has not seen it. A dry run announces nothing.
 * @throws ExpectationFailedError when the type has changed; ServiceError TOO_MANY_REQUESTS, FORBIDDEN
 */
export async function startChange(
  { changes, storeNow, clock, config, instanceId }: Needs,
  context: CallContext,
  { action, before, after, force = false, of, ops = [] }: Work,
): Promise<TypeChangeRecord> {
  const { _id, organizationId } = before;
  // Whether a schema fits all contents tells what they are.
  if (after && !(action === 'update' && force)) requireScope(context.principal, 'memory:read');
  if ((await changes.countRunning(organizationId)) >= MAX_RUNNING)
    throw new ServiceError('TOO_MANY_REQUESTS', `At most ${MAX_RUNNING} memory types may be changing at once`);
  const next = after ? JSON.stringify(nextFields(after)) : '';
  const record: TypeChangeRecord = {
    _id,
    organizationId,
    changeId: newId(),
    action,
    state: 'running',
    force,
    next,
    principal: JSON.stringify(context.principal),
    requestId: context.requestId,
    checked: 0,
    of,
    incompatible: 0,
    examples: '[]',
    cursor: '',
    steps: 1,
    owner: instanceId,
    leaseUntil: (await storeNow()) + config.LEASE_MS,
    startedAt: isoTime(clock.now()),
    finishedAt: null,
  };
  const prior = await changes.byType(organizationId, _id);
  // Another request has announced its work since this one read the type; a dry run must not take its place.
  if (prior?.state === 'running' && prior.action !== 'dryRun') throw new ExpectationFailedError(0, TYPE_CHANGES.name);
  const announced = update(TYPES, asRead(before), {
    set: {
      ...(action === 'delete'
        ? { state: 'deleting' }
        : { state: 'changing', next, bytes: after!.bytes!, relationTargets: bothTargets(before, after!) }),
      epoch: before.epoch + 1,
    },
  });
  await changes.apply(organizationId, [startOp(prior, record), ...(action === 'dryRun' ? [] : [announced]), ...ops]);
  return { ...record, steps: prior ? prior.steps + 1 : 1 };
}

/** While a type changes, its relations as they are and as they are to be point to types. */
const bothTargets = (...both: MemoryTypeRecord[]): string[] => [
  ...new Set(both.flatMap(({ relationTargets = [] }) => relationTargets)),
];

/**
 * Carries the work out. Resolves to its record when it has ended, or after MEMORY_CHANGE_WAIT_MS, or when this process
 * could not go on: then it goes on in the background, here or by the job `type-changes` of any replica.
 */
export async function carryOutForAWhile(
  deps: Needs,
  context: CallContext,
  change: TypeChangeRecord,
): Promise<TypeChangeRecord> {
  const waitMs = Math.min(deps.config.MEMORY_CHANGE_WAIT_MS, context.deadline - Date.now() - ANSWER_MS);
  const work = deps.background
    .run((signal) => carryOut(deps, change, signal))
    .catch((error: unknown) => {
      deps.log.error({ typeId: change._id, error }, 'could not carry out a change of a memory type; a job goes on');
      return change;
    });
  return waitMs > 0 ? withTimeout(work, waitMs).catch(() => change) : change;
}
