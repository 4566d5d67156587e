import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Env } from 'platform/core/config.ts';
import { composeDown } from './docker.ts';
import { endProcess } from './running.ts';
import { SERVERS } from './servers.ts';
import type { PrintProgress } from './progress.ts';
import { withLock, readState, runningOf, writeState } from './state.ts';

/** Stops only what `up` started. Keeps the ports, and without `purge` the data, for the next `up`. */
export function down(engines: string, env: Env, print: PrintProgress, { purge }: { purge: boolean }): Promise<void> {
  return withLock(engines, print, async () => {
    const state = readState(engines);
    if (state.docker) await composeDown(env, print, purge);
    delete state.docker;
    await Promise.all(
      SERVERS.map(async (spec) => {
        const running = runningOf(state, spec);
        if (running) await endProcess(running);
        print(running ? `${spec.name} stopped (pid ${running.pid})` : `${spec.name} is not running`);
        delete state.servers[spec.key]?.process;
      }),
    );
    writeState(engines, state);
    if (purge) rmSync(join(engines, 'data'), { recursive: true, force: true });
  });
}
