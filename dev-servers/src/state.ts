import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { lockFile } from 'platform/store/sqlite/file-lock.ts';
import { StartError } from 'platform/core/start-error.ts';
import type { Recipe } from './server-spec.ts';
import { isRunning, type Known } from './running.ts';
import type { Say } from './say.ts';

/** What `up` chose and started, kept in state.json. */
export interface State {
  /** `up --docker` started the composition. */
  docker?: true;
  servers: Partial<Record<Recipe['key'], { port: number; process?: Known }>>;
}

const fileOf = (engines: string): string => join(engines, 'state.json');
const ASK_AGAIN_MS = 200;

export function readState(engines: string): State {
  try {
    return JSON.parse(readFileSync(fileOf(engines), 'utf8')) as State;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { servers: {} };
    throw new StartError(`${fileOf(engines)} cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

/** All or nothing. */
export function writeState(engines: string, state: State): void {
  writeFileSync(`${fileOf(engines)}.new`, `${JSON.stringify(state, null, 2)}\n`);
  renameSync(`${fileOf(engines)}.new`, fileOf(engines));
}

/** The process of a server that `up` started, when it is still that one. */
export function runningOf(state: State, { key }: Recipe): Known | undefined {
  const known = state.servers[key]?.process;
  return known && isRunning(known) ? known : undefined;
}

/** Runs `work` alone: another `up` or `down` is waited for. */
export async function alone<T>(engines: string, say: Say, work: () => Promise<T>): Promise<T> {
  const lock = await takeLock(engines, say);
  try {
    return await work();
  } finally {
    lock.release();
  }
}

async function takeLock(engines: string, say: Say): Promise<{ release(): void }> {
  const held = 'another npm run engines is at work; waiting for it';
  for (let told = false; ; told = true) {
    try {
      return lockFile(join(engines, 'command'), held);
    } catch (error) {
      if (!(error instanceof StartError && error.message === held)) throw error;
      if (!told) say(held);
      await delay(ASK_AGAIN_MS);
    }
  }
}
