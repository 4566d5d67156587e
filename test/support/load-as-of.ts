import type { Load, SentRun } from './load.ts';

/**
 * Notes what a load has got acknowledged by now. The result gives, after the load has stopped, the load as a copy of
 * the data must hold it that was made at any time since: what was acknowledged before is in it, and of everything else
 * either all or nothing.
 */
export function noteLoad(load: Load): () => Load {
  const sent = new Set(load.sent);
  const objects = new Map(
    load.objects.map(({ key, possible, ever, acknowledged }) => [
      key,
      { possible, known: ever.length, acknowledged: [...acknowledged] },
    ]),
  );
  const runs = new Set(load.runs);
  return () => ({
    ...load,
    sent: load.sent.map((one) => (sent.has(one) || one.outcome === 'rejected' ? one : { ...one, outcome: 'unknown' })),
    objects: load.objects.map((object) => {
      const noted = objects.get(object.key);
      return {
        ...object,
        possible: noted ? [...noted.possible, ...object.ever.slice(noted.known)] : object.ever,
        acknowledged: noted?.acknowledged ?? [],
      };
    }),
    // 504 is what a client got that does not know whether its run ended
    runs: load.runs.map((run): SentRun => (runs.has(run) ? { ...run } : { ...run, outcome: 'unknown', status: 504 })),
  });
}
