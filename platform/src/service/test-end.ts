const open = new Set<() => Promise<void>>();
let isOver = false;

// jest runs it after the last test of the file and all hooks in its describe blocks; bench/ has no jest
if (typeof afterAll === 'function')
  afterAll(async () => {
    isOver = true;
    for (const close of [...open].reverse()) await close();
  });

/**
 * Closes what a test opened when the tests of its file are over: a test that fails may not come to close it, and jest
 * then never ends.
 * @returns the function by which the test closes it earlier; it closes only once
 */
export function closedInTheEnd(close: () => Promise<unknown> | unknown): () => Promise<void> {
  let closed: Promise<void> | undefined;
  const closeOnce = (): Promise<void> => {
    open.delete(closeOnce);
    return (closed ??= (async () => void (await close()))());
  };
  open.add(closeOnce);
  return closeOnce;
}

const MAX_PAUSE_MS = 50;

/**
 * Polls until the answer is neither undefined nor false: for a state that something else reaches by itself. The time
 * limit of the test ends a wait in vain, and the polls end with the tests of the file. The pauses between the polls
 * grow with the wait, because a poll of a whole stack takes the processor from what it waits for.
 */
export async function eventually<T>(poll: () => Promise<T | undefined | false> | T | undefined | false): Promise<T> {
  for (const startMs = performance.now(); ;) {
    const answer = await poll();
    if (answer !== undefined && answer !== false) return answer;
    if (isOver) throw new Error('The tests are over, and this never happened');
    const pauseMs = Math.min((performance.now() - startMs) / 10, MAX_PAUSE_MS);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
