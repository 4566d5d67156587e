import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { StartError } from 'platform/core/start-error.ts';
import { isGone } from './process-state.ts';
import type { ServerSpec } from './server-spec.ts';

const POLL_MS = 50;
/** A started process that still has another command line after this time is not the server. */
const EXEC_WITHIN_MS = 5_000;
const ANSWERS_WITHIN_MS = 60_000;
/** Kafka needs some time for its controlled shutdown. */
const ENDS_WITHIN_MS = 20_000;

/** A process, identified by its id and its arguments, because the system may have given the id to another process. */
export interface KnownProcess {
  pid: number;
  command: readonly string[];
}

/** Starts the command with its output appended to `log`. @throws StartError when the program cannot be started */
export function launch(
  command: readonly string[],
  options: { log: string; cwd: string; detached: boolean; env?: NodeJS.ProcessEnv },
): ChildProcess & { pid: number } {
  const [program, ...args] = command as [string, ...string[]];
  const log = openSync(options.log, 'a', 0o600);
  const { detached, cwd, env } = options;
  const child = spawn(program, args, { detached, cwd, env, stdio: ['ignore', log, log] });
  closeSync(log);
  // reported below by the missing pid
  child.on('error', () => undefined);
  if (child.pid === undefined) throw new StartError(`${program} cannot be started`);
  return child as ChildProcess & { pid: number };
}

/** False if the process has ended, is a zombie, or if another process has its id now. */
export function isRunning({ pid, command }: KnownProcess): boolean {
  const expected = command.slice(1);
  try {
    const text = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    // empty during an exec (setpriv becomes the server) and after the end of the process
    if (text === '') return !isGone(pid);
    const given = text.split('\0').slice(0, -1);
    return given.length >= command.length && given.slice(-expected.length).every((each, i) => each === expected[i]);
  } catch {
    return false;
  }
}

/**
 * Resolves when the server answers.
 * @throws StartError with the last line of `log` if it ends or does not answer in time
 */
export async function untilAnswering(spec: ServerSpec, known: KnownProcess, port: number, log: string): Promise<void> {
  const until = Date.now() + ANSWERS_WITHIN_MS;
  let execUntil = Date.now() + EXEC_WITHIN_MS;
  for (;;) {
    if (await spec.answers(port).catch(() => false)) return;
    // between fork and exec the process still has its parent's command line
    if (isRunning(known)) execUntil = Date.now() + EXEC_WITHIN_MS;
    if (isGone(known.pid) || Date.now() > execUntil)
      throw new StartError(`${spec.name} ended before it answered: ${lastLogLine(log)} (${log})`);
    if (Date.now() > until)
      throw new StartError(
        `${spec.name} did not answer on port ${port} within ${ANSWERS_WITHIN_MS / 1000} s: ${lastLogLine(log)} (${log})`,
      );
    await delay(POLL_MS);
  }
}

/** Ends the process with SIGTERM, or with SIGKILL if that takes too long. Resolves when it has ended. */
export async function endProcess(known: KnownProcess): Promise<void> {
  // a paused process ignores SIGTERM, and SecantusDB hangs if SIGTERM arrives at the moment it continues
  if (isRunning(known)) process.kill(known.pid, 'SIGCONT');
  await delay(POLL_MS);
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    if (!isRunning(known)) return;
    process.kill(known.pid, signal);
    for (const until = Date.now() + ENDS_WITHIN_MS; isRunning(known) && Date.now() < until;) await delay(POLL_MS);
  }
}

const lastLogLine = (log: string): string => readFileSync(log, 'utf8').trim().split('\n').at(-1) || 'it wrote nothing';
