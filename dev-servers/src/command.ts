import { execFile } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import type { Env } from 'platform/core/config.ts';
import { StartError } from 'platform/core/start-error.ts';

const execute = promisify(execFile);
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

/** True if PATH has this program. */
export const onPath = (program: string, env: Env): boolean =>
  (env.PATH ?? '').split(delimiter).some((folder) => folder !== '' && isExecutable(join(folder, program)));

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** True if the program can be started and exits with code 0. */
export const succeeds = (command: readonly string[], env: Env): Promise<boolean> =>
  outputOf(command, env).then(
    () => true,
    () => false,
  );

/** Runs a program. @returns its standard output. @throws Error with the last line of its output, if it fails */
export async function outputOf([program, ...args]: readonly string[], env: Env, cwd?: string): Promise<string> {
  try {
    return (await execute(program as string, args, { env, cwd, maxBuffer: MAX_OUTPUT_BYTES })).stdout;
  } catch (error) {
    const { stderr = '', stdout = '' } = error as { stderr?: string; stdout?: string };
    const last = `${stdout}\n${stderr}`.trim().split('\n').at(-1) || (error as Error).message;
    throw new Error(last, { cause: error });
  }
}

/** Runs a program and waits for its end. @throws StartError "<what> failed: <the last line of its output>" */
export async function runStep(what: string, command: readonly string[], env: Env, cwd?: string): Promise<void> {
  try {
    await outputOf(command, env, cwd);
  } catch (error) {
    throw new StartError(`${what} failed: ${(error as Error).message}`, { cause: error });
  }
}

/**
 * Waits until all are settled, then rejects with the first rejection, so that nothing runs on after the caller's error.
 */
export async function settleAll(works: readonly Promise<unknown>[]): Promise<void> {
  for (const outcome of await Promise.allSettled(works)) if (outcome.status === 'rejected') throw outcome.reason;
}
