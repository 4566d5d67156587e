import { spawn } from 'node:child_process';
import { join } from 'node:path';
import type { Env } from 'platform/core/config.ts';
import { StartError } from 'platform/core/start-error.ts';
import { endOf } from './child.ts';
import { forNode } from './environment.ts';
import type { Seeded } from './seed.ts';
import type { SetUpMessage, SetUpWork } from './set-up.ts';

const END_MS = 2_000;

/** The process of set-up.ts. Ask for the next work when the answer before has come; it rejects when the work fails. */
export interface SetUp {
  /** @returns the files of versions before 0.1.0 that were removed */
  createKeys(folder: string): Promise<string[]>;
  /** @returns undefined if an earlier start on the same engines has seeded */
  seed(work: Extract<SetUpWork, { seed: object }>['seed']): Promise<Seeded | undefined>;
  /** Ends the process between two steps of its work, or kills it after END_MS. */
  end(): Promise<void>;
}

/** Starts it in its own process group, so that only the launcher gets the terminal's Ctrl-C. */
export function startSetUp(env: Env, print: (line: string) => void): SetUp {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'set-up.ts')], {
    env: forNode(env),
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    detached: true,
  });
  let answer = Promise.withResolvers<SetUpMessage>();
  let endedBy: Error | undefined;
  child.on('message', (message: SetUpMessage) => {
    if ('line' in message) print(message.line);
    else if ('fault' in message) answer.reject(new StartError(message.fault));
    else answer.resolve(message);
  });
  // it may also end while nothing is asked
  answer.promise.catch(() => undefined);
  const ended = endOf(child).then((cause) => answer.reject((endedBy = new Error(`The set-up ended (${cause})`))));

  async function ask<T extends SetUpMessage>(work: SetUpWork): Promise<T> {
    answer = Promise.withResolvers();
    if (endedBy) throw endedBy;
    // one that cannot be told has ended, or ends now
    child.send(work, () => undefined);
    return (await answer.promise) as T;
  }

  return {
    createKeys: async (folder) => (await ask<{ removed: string[] }>({ createKeys: { folder } })).removed,
    seed: async (work) => (await ask<{ seeded: Seeded | undefined }>({ seed: work })).seeded,
    async end() {
      if (child.connected) child.disconnect();
      const killTimer = setTimeout(() => child.kill('SIGKILL'), END_MS);
      await ended;
      clearTimeout(killTimer);
    },
  };
}
