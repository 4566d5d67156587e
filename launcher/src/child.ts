import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Env } from 'platform/core/config.ts';
import { SETTINGS_BY_MESSAGE, type ChildMessage, type SettingsMessage } from 'platform/service/process.ts';
import { forNode, only } from './environment.ts';

const REPOSITORY = join(import.meta.dirname, '../..');
const FIRST_DELAY_MS = 200;
const MAX_DELAY_MS = 10_000;
/**
 * A child that was ready for this long counts as healthy: after its next end the restart delay begins at its minimum.
 */
const HEALTHY_MS = 30_000;
/** Time to stop for a child that has not reported its own `stopsWithinMs` yet. */
const EARLY_STOP_MS = 5_000;

/** One of the processes that the launcher starts. */
export interface ChildSpec {
  name: string;
  /** Folder of its package, relative to the repository's root. */
  folder: string;
}

export const mainFileOf = ({ folder }: ChildSpec): string => join(REPOSITORY, folder, 'src/main.ts');

/** A process ended before it was ready. `faults` are the sentences that it reported; empty if it crashed. */
export class ProcessEndedError extends Error {
  override readonly name = 'ProcessEndedError';
  readonly processName: string;
  readonly faults: readonly string[];
  constructor(processName: string, cause: string, faults: readonly string[]) {
    super(`ended (${cause}) before it was ready`);
    this.processName = processName;
    this.faults = faults;
  }
}

/** A process from its start to its end. A restart makes another one. */
interface StartedChild {
  /** host:port; rejects with ProcessEndedError if the process ends first. */
  ready: Promise<string>;
  /** Why it ended (a signal or an exit code), and whether it was ready for HEALTHY_MS before. */
  ended: Promise<{ cause: string; healthy: boolean }>;
  stop(): Promise<void>;
}

export interface SupervisedChild {
  /** host:port of the first start; rejects with ProcessEndedError. */
  ready: Promise<string>;
  /** Lets the process drain, and kills it if it takes too long. */
  stop(): Promise<void>;
}

/**
 * Starts a process with those settings that it asks for. Once it was ready, restarts it whenever it ends, after a
 * delay that doubles up to MAX_DELAY_MS.
 * @param flags options of Node
 * @param asked is told the names of the settings that the process asks for
 */
export function superviseChild(
  spec: ChildSpec,
  env: Env,
  print: (line: string) => void,
  flags: readonly string[] = [],
  asked: (names: readonly string[]) => void = () => undefined,
): SupervisedChild {
  const stopping = new AbortController();
  let started = startChild(spec, env, flags, asked);
  const restartWhenEnded = async (): Promise<void> => {
    for (let delayMs = FIRST_DELAY_MS; ; delayMs = Math.min(delayMs * 2, MAX_DELAY_MS)) {
      const { cause, healthy } = await started.ended;
      if (stopping.signal.aborted) return;
      if (healthy) delayMs = FIRST_DELAY_MS;
      print(`${spec.name} ended (${cause}); starting it again in ${delayMs / 1000} s`);
      await delay(delayMs, undefined, { signal: stopping.signal });
      started = startChild(spec, env, flags, asked);
      started.ready.then(
        () => print(`${spec.name} is back`),
        ({ faults }: ProcessEndedError) => faults.forEach((fault) => print(`${spec.name}: ${fault}`)),
      );
    }
  };
  const { ready } = started;
  // rejects when stop() aborts the delay, or when the first start was never ready, which `ready` reports
  ready.then(restartWhenEnded).catch(() => undefined);
  return {
    ready,
    async stop() {
      stopping.abort();
      await started.stop();
    },
  };
}

/** Starts the process in its own process group, so that only the launcher gets the terminal's Ctrl-C. */
function startChild(
  spec: ChildSpec,
  env: Env,
  flags: readonly string[],
  asked: (names: readonly string[]) => void,
): StartedChild {
  const child = spawn(process.execPath, [...flags, mainFileOf(spec)], {
    env: { ...forNode(env), [SETTINGS_BY_MESSAGE]: 'yes' },
    cwd: join(REPOSITORY, spec.folder),
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    detached: true,
  });
  const ready = Promise.withResolvers<string>();
  const faults: string[] = [];
  let stopsWithinMs = EARLY_STOP_MS;
  let readyAt = Number.POSITIVE_INFINITY;
  child.on('message', (message: ChildMessage) => {
    if ('asksFor' in message) {
      asked(message.asksFor);
      const answer: SettingsMessage = { settings: only(message.asksFor, env) };
      // a process that has ended is reported by its exit
      return void child.send(answer, () => undefined);
    }
    if ('faults' in message) return void faults.push(...message.faults);
    readyAt = Date.now();
    ({ stopsWithinMs } = message);
    ready.resolve(message.ready);
  });
  const ended = endOf(child).then((cause) => {
    ready.reject(new ProcessEndedError(spec.name, cause, faults));
    return { cause, healthy: Date.now() - readyAt > HEALTHY_MS };
  });
  return {
    ready: ready.promise,
    ended,
    async stop() {
      child.kill('SIGTERM');
      const killTimer = setTimeout(() => child.kill('SIGKILL'), stopsWithinMs + EARLY_STOP_MS);
      await ended;
      clearTimeout(killTimer);
    },
  };
}

/** Resolves with the signal or exit code when the process is gone and all its messages have arrived. */
export async function endOf(child: ChildProcess): Promise<string> {
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
