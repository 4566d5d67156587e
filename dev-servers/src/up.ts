import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Env } from 'platform/core/config.ts';
import { makeFolder } from 'platform/core/folder.ts';
import { StartError } from 'platform/core/start-error.ts';
import { allDone } from './all-done.ts';
import { install } from './install.ts';
import { freePort, isFree } from './ports.ts';
import type { Recipe } from './server-spec.ts';
import { answering, launch, type Known } from './running.ts';
import { exportsOf, SERVERS } from './servers.ts';
import type { Say } from './say.ts';
import { alone, readState, runningOf, writeState, type State } from './state.ts';

/** Starts what does not run and waits until all answer. @returns the lines to evaluate. @throws StartError */
export async function up(engines: string, env: Env, say: Say): Promise<string> {
  if (!existsSync('/proc/self/cmdline'))
    throw new StartError('npm run engines -- up runs on Linux; elsewhere use up --docker or servers of your own');
  return alone(engines, say, async () => {
    const state = readState(engines);
    if (state.docker) throw new StartError('The composition of up --docker runs; npm run engines -- down ends it');
    await install(engines, env, say);
    for (const folder of ['data', 'log']) makeFolder(join(engines, folder));
    await allDone(SERVERS.map((recipe) => keepUp(engines, env, state, recipe, say)));
    return exportsOf(({ key, url }) => url((state.servers[key] as { port: number }).port));
  });
}

/** Started again on its port and data when it has died. */
async function keepUp(engines: string, env: Env, state: State, recipe: Recipe, say: Say): Promise<void> {
  const log = join(engines, 'log', `${recipe.key}.log`);
  const before = state.servers[recipe.key];
  const running = runningOf(state, recipe);
  const port = before && (running || (await isFree(before.port))) ? before.port : await freePort();
  const known = running ?? (await begin(engines, env, state, recipe, port, log));
  await answering(recipe, known, port, log);
  say(`${recipe.name} ${running ? 'runs already' : 'answers'} on 127.0.0.1:${port} (pid ${known.pid})`);
}

async function begin(
  engines: string,
  env: Env,
  state: State,
  recipe: Recipe,
  port: number,
  log: string,
): Promise<Known> {
  const place = { engines, data: join(engines, 'data', recipe.key), port };
  makeFolder(place.data);
  await recipe.prepare(place);
  const command = recipe.command(place);
  const child = launch(command, { log, cwd: place.data, detached: true, env });
  child.unref();
  const known = { pid: child.pid, command };
  // at once: should this command be killed while it waits, the next one knows the server
  state.servers[recipe.key] = { port, process: known };
  writeState(engines, state);
  return known;
}
