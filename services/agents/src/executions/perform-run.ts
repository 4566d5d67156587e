import type { CallOptions } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { ServiceError } from 'platform/core/errors.ts';
import type { Principal } from 'platform/core/principal.ts';
import type { LoadedVersion } from '../definitions/version-loader.ts';
import type { Deps } from '../deps.ts';
import { executionEvents } from '../events.ts';
import { runTools } from '../tools/run-tools.ts';
import { failureFacts } from './answer.ts';
import { cancelledRun, evaluate, type EvaluatedRun } from './evaluate.ts';
import { settleOrRelease } from './reservation.ts';
import { chargeOf } from './rules.ts';
import type { ExecutionRecord } from './store.ts';
import { withdraw } from './withdraw.ts';

type Needs = Pick<
  Deps,
  | 'executions'
  | 'auth'
  | 'credits'
  | 'releases'
  | 'heartbeats'
  | 'settledRuns'
  | 'countedRuns'
  | 'runtimes'
  | 'memory'
  | 'callbackTokens'
  | 'schedule'
  | 'clock'
  | 'config'
  | 'log'
>;

/** A run whose record this process owns and whose credits are reserved. */
export interface ReservedRun {
  execution: ExecutionRecord;
  version: LoadedVersion;
  argsText: string;
  /** For what the run does outside of this service; see RunRequest. */
  idempotencyKey: string;
  /** Whoever asked for it. */
  asked: Principal;
}

type FinishedRun = EvaluatedRun & { ended: ExecutionRecord };

/**
 * Performs a run: evaluate under heartbeat → finish → settle or release. `finish` is the commit point: only the owner
 * of the lease can write it, and only what it wrote is charged.
 * @param call on whose behalf credits are asked
 * @param cancel ends the run; CancelAgentExecution does so, too
 * @returns undefined when the reaper has interrupted the run; this result is discarded
 * @throws ServiceError QUEUE_FULL, UNAVAILABLE: nothing was run, record and reservation are taken back; RUN_CANCELLED,
 * OUTCOME_UNKNOWN as in `withdraw`
 */
export async function performRun(
  deps: Needs,
  run: ReservedRun,
  call: CallOptions,
  cancel?: AbortSignal,
): Promise<FinishedRun | undefined> {
  const leave = deps.countedRuns.begin(run.version.runtime.type);
  let finished: FinishedRun | undefined;
  try {
    const { startedAt, ...evaluated } = await evaluateUnderHeartbeat(deps, run, call, cancel);
    finished = await finish(deps, { ...run.execution, startedAt }, run.version, evaluated);
  } finally {
    leave(finished?.ended);
  }
  if (!finished) return undefined;
  const { ended } = finished;
  await settleOrRelease(deps, ended, call).catch((error: unknown) =>
    deps.log.warn(
      { error, agentExecutionId: ended._id, requestId: call.requestId },
      'a run is not settled yet; the reaper will settle it',
    ),
  );
  return finished;
}

/** Evaluates while a heartbeat keeps lease and reservation. */
async function evaluateUnderHeartbeat(
  deps: Needs,
  { execution, version, argsText, idempotencyKey, asked }: ReservedRun,
  call: CallOptions,
  cancel: AbortSignal | undefined,
): Promise<EvaluatedRun & { startedAt: string | null }> {
  let startedAt: string | null = null;
  const { signal, stop } = deps.heartbeats.start(deps, execution, () => startedAt, call, cancel);
  const onStart = (): void => {
    startedAt = isoTime(deps.clock.now());
  };
  try {
    const tools = runTools(deps, { execution, version, asked });
    const evaluated = await evaluate(deps, execution, version, { argsText, idempotencyKey, tools, signal, onStart });
    return { ...evaluated, startedAt };
  } catch (error) {
    try {
      await withdraw(deps, execution);
    } finally {
      await deps.releases.start(deps.credits, execution._id, call);
    }
    throw error;
  } finally {
    stop();
  }
}

/**
 * Writes end, charge and events in one batch. A run that somebody cancelled before that ends as cancelled, also when it
 * had come to an end by itself: the answer to the cancellation said so. Undefined: the reaper has interrupted the run.
 * @throws ServiceError OUTCOME_UNKNOWN
 */
async function finish(
  { executions, clock }: Pick<Deps, 'executions' | 'clock'>,
  execution: ExecutionRecord,
  { price }: LoadedVersion,
  evaluated: EvaluatedRun,
): Promise<FinishedRun | undefined> {
  const finishedAt = isoTime(clock.now());
  try {
    for (const run of [evaluated, cancelledRun(evaluated.end.usage)]) {
      const chargeMicros = chargeOf(price, run.end);
      const ended: ExecutionRecord = { ...execution, ...run.end, chargeMicros, finishedAt };
      if (await executions.finish(ended, run, executionEvents(ended, finishedAt))) return { ...run, ended };
    }
    return undefined;
  } catch (cause) {
    throw new ServiceError('OUTCOME_UNKNOWN', undefined, { facts: failureFacts(execution), cause });
  }
}
