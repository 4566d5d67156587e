import { setTimeout as delay } from 'node:timers/promises';
import type { CallOptions } from 'platform/rpc/call.ts';
import type { Log } from 'platform/core/log.ts';
import type { Deps } from '../deps.ts';
import { isFinal } from './settle.ts';

export interface Releases {
  /**
   * Gives back what was set aside for a run that does not start, in the background and again and again until credits answers: a
   * reservation whose answer was lost may still be made when its engine goes on. Resolves after the first attempt, whatever came of it.
   */
  begin(credits: Pick<Deps['credits'], 'release'>, id: string, call: CallOptions): Promise<void>;
  /** Those that are repeated. */
  readonly outstanding: number;
  /** Gives up; what is left expires by itself. */
  stop(): void;
}

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;
const OUTSTANDING_MAX = 1_000;

/** @param ttlMs after which a reservation has expired by itself */
export function openReleases({
  ttlMs,
  log,
  most = OUTSTANDING_MAX,
}: {
  ttlMs: number;
  log: Log;
  most?: number;
}): Releases {
  const outstanding = new Set<string>();
  const stopping = new AbortController();
  const { signal } = stopping;

  /** Rejects when it is to stop. */
  async function repeat(release: () => Promise<boolean>): Promise<boolean> {
    const until = performance.now() + ttlMs;
    for (
      let pauseMs = FIRST_PAUSE_MS;
      performance.now() + pauseMs < until;
      pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)
    ) {
      await delay(pauseMs, undefined, { ref: false, signal });
      if (await release()) return true;
    }
    return false;
  }

  return {
    async begin(credits, id, call) {
      const release = (): Promise<boolean> => credits.release({ id }, call).then(() => true, isFinal);
      const expires = (): void =>
        log.warn({ agentExecutionId: id, requestId: call.requestId }, 'not released; the reservation will expire');
      if (await release()) return;
      if (signal.aborted || outstanding.size >= most) return expires();
      outstanding.add(id);
      void repeat(release)
        .catch(() => false)
        .then((over) => {
          outstanding.delete(id);
          if (!over) expires();
        });
    },
    get outstanding() {
      return outstanding.size;
    },
    stop: () => stopping.abort(),
  };
}
