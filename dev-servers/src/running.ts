import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { StartError } from 'platform/core/start-error.ts';
import { isGone } from './process-state.ts';
import type { Recipe } from './server-spec.ts';

const POLL_MS = 50;
/** A process that has another command line for longer is not the server. */
const BECOMES_WITHIN_MS = 5_000;
const ANSWERS_WITHIN_MS = 60_000;
/** Kafka hands over and closes its logs first. */
const ENDS_WITHIN_MS = 20_000;

/** A process by its id and by the arguments it was started with: an id alone may be somebody else's by now. */
export interface Known {
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
  // the absent pid says it first
  child.on('error', () => undefined);
  if (child.pid === undefined) throw new StartError(`${program} cannot be started`);
  return child as ChildProcess & { pid: number };
}

/** False for a process that ended, a zombie, and one that has come to this id since. */
export function isRunning({ pid, command }: Known): boolean {
  const expected = command.slice(1);
  try {
    const text = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    // nothing stands there in the moment of an exec (setpriv becomes the server), and once it has ended
    if (text === '') return !isGone(pid);
    const given = text.split('\0').slice(0, -1);
    return given.length >= command.length && given.slice(-expected.length).every((each, i) => each === expected[i]);
  } catch {
    return false;
  }
}

/** Resolves when the server answers. @throws StartError when it ends or says nothing for a minute; its last words are in `log` */
export async function answering(recipe: Recipe, known: Known, port: number, log: string): Promise<void> {
  const until = Date.now() + ANSWERS_WITHIN_MS;
  let becomesUntil = Date.now() + BECOMES_WITHIN_MS;
  for (;;) {
    if (await recipe.answers(port).catch(() => false)) return;
    // between fork and exec it has its parent's command line
    if (isRunning(known)) becomesUntil = Date.now() + BECOMES_WITHIN_MS;
    if (isGone(known.pid) || Date.now() > becomesUntil)
      throw new StartError(`${recipe.name} ended before it answered: ${lastWords(log)} (${log})`);
    if (Date.now() > until)
      throw new StartError(
        `${recipe.name} did not answer on port ${port} within ${ANSWERS_WITHIN_MS / 1000} s: ${lastWords(log)} (${log})`,
      );
    await delay(POLL_MS);
  }
}

/** Asks the process to end, and kills it when it takes too long. Resolves when it is gone; at once when it is not running. */
export async function end(known: Known): Promise<void> {
  // a paused one hears nothing; SecantusDB hangs when it is told to end in the moment that it goes on
  if (isRunning(known)) process.kill(known.pid, 'SIGCONT');
  await delay(POLL_MS);
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    if (!isRunning(known)) return;
    process.kill(known.pid, signal);
    for (const until = Date.now() + ENDS_WITHIN_MS; isRunning(known) && Date.now() < until;) await delay(POLL_MS);
  }
}

const lastWords = (log: string): string => readFileSync(log, 'utf8').trim().split('\n').at(-1) || 'it wrote nothing';
