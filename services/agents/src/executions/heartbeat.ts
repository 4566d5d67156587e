import type { CallOptions } from 'platform/rpc/call.ts';
import type { Deps } from '../deps.ts';
import type { Execution } from './store.ts';

export interface Heartbeat {
  /** Aborted when the run is no longer its owner's. */
  lost: AbortSignal;
  stop(): void;
}

// A run that lasts this long is shown as running; a shorter one goes from queued to its end in one write.
const FIRST_BEAT_MS = 250;

/**
 * Extends lease and reservation of a run every third of the lease. A beat that fails is made up for by the next.
 * @param begunAt ISO time at which a runner took it, null while it waits
 */
export function startHeartbeat(
  deps: Pick<Deps, 'credits' | 'executions' | 'config' | 'log'>,
  execution: Execution,
  begunAt: () => string | null,
  call: CallOptions,
): Heartbeat {
  const lost = new AbortController();
  const { _id: id, requestId } = execution;
  const failed = (what: string) => (error: unknown) => deps.log.warn({ error, agentExecutionId: id, requestId }, what);
  const beat = (): void => {
    deps.credits
      .extend({ id, ttlMs: deps.config.RESERVATION_TTL_MS }, call)
      .catch(failed('the reservation was not extended'));
    deps.executions.beat({ ...execution, startedAt: begunAt() }).then((owned) => {
      if (!owned) lost.abort();
    }, failed('the lease was not extended'));
  };
  const intervalMs = deps.config.RUN_LEASE_MS / 3;
  const first = setTimeout(beat, Math.min(FIRST_BEAT_MS, intervalMs));
  const rest = setInterval(beat, intervalMs);
  return {
    lost: lost.signal,
    stop() {
      clearTimeout(first);
      clearInterval(rest);
    },
  };
}
