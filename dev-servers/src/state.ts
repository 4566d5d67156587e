import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { lockFile } from 'platform/store/sqlite/file-lock.ts';
import { StartError } from 'platform/core/start-error.ts';
import type { ServerSpec } from './server-spec.ts';
import { isRunning, type KnownProcess } from './running.ts';
import type { PrintProgress } from './progress.ts';

/** The ports and processes that `up` chose and started; stored in state.json. */
export interface State {
  /** `up --docker` has started deploy/compose.yaml. */
  docker?: true;
  servers: Partial<Record<ServerSpec['key'], { port: number; process?: KnownProcess }>>;
}

const fileOf = (engines: string): string => join(engines, 'state.json');
const RETRY_MS = 200;

export function readState(engines: string): State {
  try {
    return JSON.parse(readFileSync(fileOf(engines), 'utf8')) as State;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { servers: {} };
    throw new StartError(`${fileOf(engines)} cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

/** Replaces the file atomically. */
export function writeState(engines: string, state: State): void {
  writeFileSync(`${fileOf(engines)}.new`, `${JSON.stringify(state, null, 2)}\n`);
  renameSync(`${fileOf(engines)}.new`, fileOf(engines));
}

/** The process of a server that `up` started, if it still runs. */
export function runningOf(state: State, { key }: ServerSpec): KnownProcess | undefined {
  const known = state.servers[key]?.process;
  return known && isRunning(known) ? known : undefined;
}

/** Runs `work` under a file lock; waits while another `up` or `down` holds it. */
export async function withLock<T>(engines: string, print: PrintProgress, work: () => Promise<T>): Promise<T> {
  const lock = await takeLock(engines, print);
  try {
    return await work();
  } finally {
    lock.release();
  }
}

async function takeLock(engines: string, print: PrintProgress): Promise<{ release(): void }> {
  const held = 'waiting for another npm run engines to finish';
  for (let isReported = false; ; isReported = true) {
    try {
      return lockFile(join(engines, 'command'), held);
    } catch (error) {
      if (!(error instanceof StartError && error.message === held)) throw error;
      if (!isReported) print(held);
      await delay(RETRY_MS);
    }
  }
}
