import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Told } from 'platform/service/process.ts';

const REPOSITORY = join(import.meta.dirname, '../..');
const FIRST_DELAY_MS = 200;
const LONGEST_DELAY_MS = 10_000;
/** A child that worked for this long is healthy again: its next end starts the back-off anew. */
const HEALTHY_MS = 30_000;
/** Bound of a stop before the child has told its own. */
const EARLY_STOP_MS = 5_000;

export interface Part {
  name: string;
  /** Folder of its package, from the repository's root. */
  folder: string;
}

export const mainFileOf = (part: Part): string => join(REPOSITORY, part.folder, 'src/main.ts');

/** A part ended before it was ready; `faults` are its own sentences, none when it died or wrote a stack. */
export class ProcessEndedError extends Error {
  override readonly name = 'ProcessEndedError';
  readonly part: string;
  readonly faults: readonly string[];
  constructor(part: string, cause: string, faults: readonly string[]) {
    super(`ended (${cause}) before it was ready`);
    this.part = part;
    this.faults = faults;
  }
}

/** One life of a part. */
interface Life {
  /** host:port; rejects with ProcessEndedError when it ends before that. */
  ready: Promise<string>;
  /** How it ended and for how long it was ready. */
  ended: Promise<{ cause: string; healthy: boolean }>;
  stop(): Promise<void>;
}

export interface SupervisedChild {
  /** host:port, once the first life is ready; rejects with ProcessEndedError. From then on it is started again whenever it dies. */
  ready: Promise<string>;
  /** Lets it drain; one that does not end in its time is killed. */
  stop(): Promise<void>;
}

export function superviseChild(part: Part, env: NodeJS.ProcessEnv, say: (line: string) => void): SupervisedChild {
  const stopping = new AbortController();
  let life = begin(part, env);
  const keepAlive = async (): Promise<void> => {
    for (let delayMs = FIRST_DELAY_MS; ; delayMs = Math.min(delayMs * 2, LONGEST_DELAY_MS)) {
      const { cause, healthy } = await life.ended;
      if (stopping.signal.aborted) return;
      if (healthy) delayMs = FIRST_DELAY_MS;
      say(`${part.name} ended (${cause}); starting it again in ${delayMs / 1000} s`);
      await delay(delayMs, undefined, { signal: stopping.signal });
      life = begin(part, env);
      life.ready.then(
        () => say(`${part.name} is back`),
        ({ faults }: ProcessEndedError) => faults.forEach((fault) => say(`${part.name}: ${fault}`)),
      );
    }
  };
  const { ready } = life;
  // ends by an abort, and with a first life that was never ready
  ready.then(keepAlive).catch(() => undefined);
  return {
    ready,
    async stop() {
      stopping.abort();
      await life.stop();
    },
  };
}

/** Starts the part in a process group of its own: the terminal's Ctrl-C is the launcher's to handle. */
function begin(part: Part, env: NodeJS.ProcessEnv): Life {
  const child = spawn(process.execPath, [mainFileOf(part)], {
    env,
    cwd: join(REPOSITORY, part.folder),
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    detached: true,
  });
  const ready = Promise.withResolvers<string>();
  const faults: string[] = [];
  let stopsWithinMs = EARLY_STOP_MS;
  let readyAt = Number.POSITIVE_INFINITY;
  child.on('message', (told: Told) => {
    if ('faults' in told) return void faults.push(...told.faults);
    readyAt = Date.now();
    ({ stopsWithinMs } = told);
    ready.resolve(told.ready);
  });
  const ended = endOf(child).then((cause) => {
    ready.reject(new ProcessEndedError(part.name, cause, faults));
    return { cause, healthy: Date.now() - readyAt > HEALTHY_MS };
  });
  return {
    ready: ready.promise,
    ended,
    async stop() {
      child.kill('SIGTERM');
      const hung = setTimeout(() => child.kill('SIGKILL'), stopsWithinMs + EARLY_STOP_MS);
      await ended;
      clearTimeout(hung);
    },
  };
}

/** Resolves when the process is gone and its last words are heard. */
async function endOf(child: ChildProcess): Promise<string> {
  try {
    const [[code, signal]] = await Promise.all([
      once(child, 'exit') as Promise<[number | null, string | null]>,
      once(child, 'disconnect'),
    ]);
    return signal ?? `code ${code}`;
  } catch (error) {
    return (error as Error).message;
  }
}
