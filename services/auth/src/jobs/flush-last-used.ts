import type { Job } from 'platform/jobs/jobs.ts';
import type { Deps } from '../deps.ts';

type Parts = Pick<Deps, 'lastUsed' | 'tokenLookup'>;

/** Writes the uses that this process remembers; what could not be written is remembered on. Resolves to their number. */
export async function flushLastUsed({ lastUsed, tokenLookup }: Parts): Promise<number> {
  const uses = lastUsed.drain();
  try {
    await tokenLookup.markUses(uses);
  } catch (error) {
    for (const use of uses) lastUsed.note(use);
    throw error;
  }
  return uses.length;
}

export const flushLastUsedJob = (deps: Parts & Pick<Deps, 'config'>): Job => ({
  name: 'last-used',
  description: 'Writes when server tokens were last used.',
  intervalMs: deps.config.LAST_USED_FLUSH_MS,
  everyReplica: true,
  run: () => flushLastUsed(deps),
});
