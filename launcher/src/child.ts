import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const REPOSITORY = join(import.meta.dirname, '../..');
const FIRST_DELAY_MS = 200;
const LONGEST_DELAY_MS = 10_000;
/** A child that lived this long is healthy again: its next end starts the back-off anew. */
const HEALTHY_MS = 30_000;

export interface Part {
  name: string;
  /** Folder of its package, from the repository's root. */
  folder: string;
}

/** A part ended before it was ready. */
export class PartEnded extends Error {
  override readonly name = 'PartEnded';
  readonly exitCode: number | null;
  constructor(part: string, exitCode: number | null, signal: string | null) {
    super(`${part} ended with ${signal ?? `code ${exitCode}`}`);
    this.exitCode = exitCode;
  }
}

export interface SupervisedChild {
  /** Resolves to the address when the child is ready; rejects with PartEnded when it ends before that. */
  ready: Promise<string>;
  pid(): number | undefined;
  stop(): Promise<void>;
}

/** Starts one part as a process of its own group (the terminal's Ctrl-C is the launcher's to handle) and starts it again when it dies. */
export function superviseChild(part: Part, env: NodeJS.ProcessEnv, say: (line: string) => void): SupervisedChild {
  const stopping = new AbortController();
  let child: ChildProcess;
  let delayMs = FIRST_DELAY_MS;

  const launch = (): Promise<string> => {
    const since = Date.now();
    child = spawn(process.execPath, [join(REPOSITORY, part.folder, 'src/main.ts')], { env, cwd: join(REPOSITORY, part.folder), stdio: ['ignore', 'inherit', 'inherit', 'ipc'], detached: true });
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    let wasReady = false;
    child.on('message', ({ ready }: { ready: string }) => {
      wasReady = true;
      resolve(ready);
    });
    child.on('exit', (code, signal) => {
      reject(new PartEnded(part.name, code, signal));
      if (stopping.signal.aborted || (!wasReady && delayMs === FIRST_DELAY_MS)) return;
      if (Date.now() - since > HEALTHY_MS) delayMs = FIRST_DELAY_MS;
      void restart(`${signal ?? `code ${code}`}`);
    });
    return promise;
  };

  const restart = async (cause: string): Promise<void> => {
    say(`${part.name} ended (${cause}); starting it again in ${delayMs / 1000} s`);
    const waited = await delay(delayMs, true, { signal: stopping.signal }).catch(() => false);
    if (!waited) return;
    delayMs = Math.min(delayMs * 2, LONGEST_DELAY_MS);
    launch().then(() => say(`${part.name} is back`), () => undefined);
  };

  return {
    ready: launch(),
    pid: () => child.pid,
    async stop() {
      stopping.abort();
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
    },
  };
}
