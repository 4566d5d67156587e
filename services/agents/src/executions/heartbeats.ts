import type { Log } from 'platform/core/log.ts';
import { makeOpenItems } from 'platform/core/open-items.ts';
import type { CallOptions } from 'platform/rpc/call.ts';
import type { RunActor } from 'proto/auth/v1/auth.ts';
import { inScope, outsideTraces, traceScope } from 'platform/telemetry/traces.ts';
import type { Credits } from './releases.ts';
import { findStopped, runActorOf, sameActor, type Auth } from './stopped-actors.ts';
import type { ExecutionRecord, Executions } from './store.ts';

export interface Heartbeat {
  /**
   * Aborts when this process no longer owns the run, when somebody has asked for its end, at whichever replica, when
   * its organization was deactivated or its token revoked with its runs, and with `cancel`, whose reason it has then.
   */
  signal: AbortSignal;
  stop(): void;
}

export interface Heartbeats {
  /**
   * Begins to extend the lease and the reservation of a run, as an evaluation begins.
   * @param startedAt ISO-8601 time at which a runner started the run, null while it waits
   * @param cancel ends the run
   */
  start(
    deps: Needs,
    execution: ExecutionRecord,
    startedAt: () => string | null,
    call: CallOptions,
    cancel?: AbortSignal,
  ): Heartbeat;
  /** Ends a run of this process at once; does nothing for another run. */
  cancel(organizationId: string, id: string): void;
}

/** Spelled out instead of `Pick<Deps, …>`, because deps.ts imports this file. */
interface Needs {
  auth: Auth;
  credits: Pick<Credits, 'extend'>;
  executions: Pick<Executions, 'extendLease' | 'toBeCancelled'>;
  config: { RESERVATION_TTL_MS: number };
  log: Log;
}

/** A run that lasts this long may be shown as running; a shorter one goes from queued to its end in one write. */
const TICK_MS = 250;
/** How often is looked whether runs shall end: at their records, and at what auth says of those who began them. */
const TICKS_BETWEEN_LOOKS = 4;

interface BeatingRun {
  id: string;
  organizationId: string;
  actor: RunActor;
  auth: Auth;
  executions: Needs['executions'];
  dueTick: number;
  end: AbortController;
  beat(): void;
}

/**
 * The heartbeats of all runs of this process. A run's first one comes one to two ticks after its evaluation began,
 * further ones three times per lease. One failed heartbeat does no harm: lease and reservation last until the next. One
 * timer serves all runs, so those that are due share a commit; it ticks only while there are runs.
 * @param leaseMs how long the lease of a run lasts
 */
export function makeHeartbeats(leaseMs: number): Heartbeats {
  const intervalMs = leaseMs / 3;
  const tickMs = Math.min(TICK_MS, intervalMs / 2);
  const ticksBetween = Math.floor(intervalMs / tickMs);
  const beating = makeOpenItems<BeatingRun>();
  let lastNumber = 0;
  let ticks = 0;
  let isAsking = false;
  let timer: NodeJS.Timeout | undefined;

  function tick(): void {
    ticks += 1;
    if (beating.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
    beating.forEach((run) => {
      if (run.dueTick > ticks) return;
      run.dueTick = ticks + ticksBetween;
      run.beat();
    });
    if (ticks % TICKS_BETWEEN_LOOKS !== 0) return;
    lookForCancellations();
    lookForStopped();
  }

  /** One read for each organization that has runs. A failed one does no harm: the next look comes soon. */
  function lookForCancellations(): void {
    for (const [organizationId, runs] of Map.groupBy(allBeating(), (run) => run.organizationId))
      runs[0]!.executions
        .toBeCancelled(
          organizationId,
          runs.map(({ id }) => id),
        )
        .then(
          (ids) => ids.forEach((id) => cancel(organizationId, id)),
          () => undefined,
        );
  }

  /** One question at a time. */
  function lookForStopped(): void {
    const [first, ...others] = allBeating();
    if (isAsking || !first) return;
    isAsking = true;
    const runs = [first, ...others];
    void findStopped(
      first.auth,
      runs.map(({ actor }) => actor),
    ).then((stopped) => {
      isAsking = false;
      for (const { actor, end } of runs) if (stopped.some((one) => sameActor(one, actor))) end.abort();
    });
  }

  function allBeating(): BeatingRun[] {
    const all: BeatingRun[] = [];
    beating.forEach((run) => all.push(run));
    return all;
  }

  const cancel = (organizationId: string, id: string): void =>
    allBeating()
      .find((run) => run.organizationId === organizationId && run.id === id)
      ?.end.abort();

  return {
    start({ auth, credits, executions, config, log }, execution, startedAt, call, cancel) {
      // One controller, because AbortSignal.any costs more than all the rest of a heartbeat.
      const end = new AbortController();
      const endWithCancel = (): void => end.abort(cancel?.reason);
      if (cancel?.aborted) endWithCancel();
      else cancel?.addEventListener('abort', endWithCancel, { once: true });
      const { _id: id, organizationId, requestId } = execution;
      const warn = (message: string) => (error: unknown) =>
        log.warn({ error, agentExecutionId: id, requestId }, message);
      const scope = traceScope();
      function beat(): void {
        credits.extend({ id, ttlMs: config.RESERVATION_TTL_MS }, call).catch(warn('the reservation was not extended'));
        executions.extendLease({ ...execution, startedAt: startedAt() }).then((owned) => {
          if (!owned) end.abort();
        }, warn('the lease was not extended'));
      }
      const run: BeatingRun = {
        id,
        organizationId,
        actor: runActorOf(execution),
        auth,
        executions,
        dueTick: ticks + 2,
        end,
        beat: () => inScope(scope, beat),
      };
      const number = ++lastNumber;
      beating.set(number, run);
      timer ??= setInterval(() => outsideTraces(tick), tickMs);
      const stop = (): void => {
        cancel?.removeEventListener('abort', endWithCancel);
        beating.delete(number);
      };
      return { signal: end.signal, stop };
    },
    cancel,
  };
}
