import { systemClock } from 'platform/core/clock.ts';
import { PROCESSES } from 'platform/core/processes.ts';
import { createKeys } from 'platform/rpc/keys.ts';
import { operatorName } from 'platform/rpc/peer-name.ts';
import { retryWhileUnavailable } from './retry-while-unavailable.ts';
import type { Seeded } from './seed.ts';

// Creates and renews the keys, and seeds. It runs in a process of its own, which ends, so that what it has loaded and
// made takes no memory while the product runs (ADR 24).

/** What the launcher asks for. */
export type SetUpWork =
  | { createKeys: { folder: string } }
  | { seed: { keyFolder: string; addresses: Record<string, string>; shared: boolean } };
/** `removed`: files of versions before 0.1.0; `line`: is printed while the work goes on; `fault`: why it failed. */
export type SetUpMessage =
  { line: string } | { fault: string } | { removed: string[] } | { seeded: Seeded | undefined };

const send = (message: SetUpMessage): void => void process.send?.(message);

/** The gRPC client, which no start waits for that has seeded. */
const loadSeed = () => Promise.all([import('platform/rpc/operator.ts'), import('./seed.ts')]);

async function perform(work: SetUpWork): Promise<SetUpMessage> {
  if ('createKeys' in work) {
    const names = [...Object.keys(PROCESSES), operatorName()];
    const { removed } = await createKeys(work.createKeys.folder, names);
    // while the launcher starts the services
    setImmediate(() => void loadSeed());
    return { removed };
  }
  const { keyFolder, addresses, shared } = work.seed;
  const [{ openOperator }, { seed }] = await loadSeed();
  const operator = openOperator({ keyFolder, addresses });
  const tokenIds = new Set<string>();
  try {
    const attempt = (): Promise<Seeded | undefined> => seed(operator, shared, systemClock, tokenIds);
    return { seeded: await retryWhileUnavailable(attempt, (line) => send({ line })) };
  } finally {
    operator.close();
  }
}

process.on('message', (work: SetUpWork) => {
  perform(work).then(send, (error: Error) => send({ fault: error.message }));
});
process.once('disconnect', () => process.exit());
