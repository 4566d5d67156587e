import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Env } from 'platform/core/config.ts';
import { composeDown } from './docker.ts';
import { end } from './running.ts';
import { SERVERS } from './servers.ts';
import type { Say } from './say.ts';
import { alone, readState, runningOf, writeState } from './state.ts';

/** Ends what `up` started and nothing else; ports and data are kept for the next `up`. */
export function down(engines: string, env: Env, say: Say, { purge }: { purge: boolean }): Promise<void> {
  return alone(engines, say, async () => {
    const state = readState(engines);
    if (state.docker) await composeDown(env, say, purge);
    delete state.docker;
    await Promise.all(
      SERVERS.map(async (recipe) => {
        const running = runningOf(state, recipe);
        if (running) await end(running);
        say(running ? `${recipe.name} ended (pid ${running.pid})` : `${recipe.name} does not run`);
        delete state.servers[recipe.key]?.process;
      }),
    );
    writeState(engines, state);
    if (purge) rmSync(join(engines, 'data'), { recursive: true, force: true });
  });
}
