import { setTimeout as delay } from 'node:timers/promises';
import type { CallOptions, ServiceClient } from 'platform/rpc/call.ts';
import { ServiceError } from 'platform/core/errors.ts';
import type { Log } from 'platform/core/log.ts';
import type { CreditsServiceService } from 'proto/credits/v1/credits.ts';

export type Credits = Pick<ServiceClient<typeof CreditsServiceService>, 'reserve' | 'extend' | 'settle' | 'release'>;

/** True when credits does not know the reservation, or no longer knows it: every further attempt would fail alike. */
export const isPermanent = (error: unknown): boolean =>
  error instanceof ServiceError && (error.reason === 'INVALID_REQUEST' || error.reason === 'NOT_FOUND');

export interface Releases {
  /**
   * Releases the reservation of a run that does not start. Resolves after the first attempt, also when it failed;
   * further attempts follow in the background until credits answers. Attempts matter even when no reservation is
   * known: a reserve call that failed may still be carried out later.
   */
  start(credits: Pick<Credits, 'release'>, id: string, call: CallOptions): Promise<void>;
  /** How many releases are being repeated. */
  readonly outstanding: number;
  /** Ends all attempts; what is not released expires. */
  stop(): void;
}

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;
const MAX_OUTSTANDING = 1_000;

/**
 * @param options.ttlMs time after which a reservation has expired by itself, so that a release is no longer repeated
 * @param options.maxOutstanding releases that may be repeated at once; a further one is attempted only once
 */
export function openReleases({
  ttlMs,
  log,
  maxOutstanding = MAX_OUTSTANDING,
}: {
  ttlMs: number;
  log: Log;
  maxOutstanding?: number;
}): Releases {
  const outstanding = new Set<string>();
  const stopping = new AbortController();
  const { signal } = stopping;

  /** False when the reservation has expired meanwhile. Rejects on `stop`. */
  async function repeat(attempt: () => Promise<boolean>): Promise<boolean> {
    const until = performance.now() + ttlMs;
    for (
      let pauseMs = FIRST_PAUSE_MS;
      performance.now() + pauseMs < until;
      pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)
    ) {
      await delay(pauseMs, undefined, { ref: false, signal });
      if (await attempt()) return true;
    }
    return false;
  }

  return {
    async start(credits, id, call) {
      /** True when no further attempt is needed. */
      const attempt = (): Promise<boolean> => credits.release({ id }, call).then(() => true, isPermanent);
      const giveUp = (): void =>
        log.warn({ agentExecutionId: id, requestId: call.requestId }, 'a reservation was not released; it will expire');
      if (await attempt()) return;
      if (signal.aborted || outstanding.size >= maxOutstanding) return giveUp();
      outstanding.add(id);
      void repeat(attempt)
        .catch(() => false)
        .then((released) => {
          outstanding.delete(id);
          if (!released) giveUp();
        });
    },
    get outstanding() {
      return outstanding.size;
    },
    stop: () => stopping.abort(),
  };
}
