import type { Job } from 'platform/jobs/jobs.ts';
import type { Deps } from '../deps.ts';

type Needs = Pick<Deps, 'lastUsed' | 'tokenLookup'>;

/**
 * Writes the uses that this process holds in memory; those of a failed write are kept for the next time.
 * Resolves to the number of tokens written.
 */
export async function flushLastUsed({ lastUsed, tokenLookup }: Needs): Promise<number> {
  const uses = lastUsed.drain();
  try {
    await tokenLookup.markUses(uses);
  } catch (error) {
    for (const use of uses) lastUsed.note(use);
    throw error;
  }
  return uses.length;
}

export const lastUsedJob = (deps: Needs & Pick<Deps, 'config'>): Job => ({
  name: 'last-used',
  description: 'Writes when server tokens were last used.',
  intervalMs: deps.config.LAST_USED_FLUSH_MS,
  everyReplica: true,
  run: () => flushLastUsed(deps),
});
