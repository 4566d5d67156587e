import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Env } from 'platform/core/config.ts';
import { makeFolder } from 'platform/core/folder.ts';
import { StartError } from 'platform/core/start-error.ts';
import { settleAll } from './command.ts';
import { install } from './install.ts';
import { freePort, isFree } from './ports.ts';
import type { ServerSpec } from './server-spec.ts';
import { untilAnswering, launch, type KnownProcess } from './running.ts';
import { exportsOf, SERVERS } from './servers.ts';
import type { PrintProgress } from './progress.ts';
import { withLock, readState, runningOf, writeState, type State } from './state.ts';

/**
 * Installs and starts the servers that do not run and waits until all answer.
 * @returns shell lines that export the settings of the services
 * @throws StartError
 */
export async function up(engines: string, env: Env, print: PrintProgress): Promise<string> {
  if (!existsSync('/proc/self/cmdline'))
    throw new StartError('npm run engines -- up runs on Linux; elsewhere use up --docker or servers of your own');
  return withLock(engines, print, async () => {
    const state = readState(engines);
    if (state.docker)
      throw new StartError('The servers of up --docker are running; npm run engines -- down stops them');
    await install(engines, env, print);
    for (const folder of ['data', 'log']) makeFolder(join(engines, folder));
    await settleAll(SERVERS.map((spec) => ensureRunning(engines, env, state, spec, print)));
    return exportsOf(({ key, url }) => url((state.servers[key] as { port: number }).port));
  });
}

/** Starts the server unless it runs, with its former data, and on its former port if that is free. */
async function ensureRunning(
  engines: string,
  env: Env,
  state: State,
  spec: ServerSpec,
  print: PrintProgress,
): Promise<void> {
  const log = join(engines, 'log', `${spec.key}.log`);
  const before = state.servers[spec.key];
  const running = runningOf(state, spec);
  const port = before && (running || (await isFree(before.port))) ? before.port : await freePort();
  const known = running ?? (await startServer(engines, env, state, spec, port, log));
  await untilAnswering(spec, known, port, log);
  print(`${spec.name} ${running ? 'runs already' : 'answers'} on 127.0.0.1:${port} (pid ${known.pid})`);
}

async function startServer(
  engines: string,
  env: Env,
  state: State,
  spec: ServerSpec,
  port: number,
  log: string,
): Promise<KnownProcess> {
  const location = { engines, data: join(engines, 'data', spec.key), port };
  makeFolder(location.data);
  await spec.prepare(location);
  const command = spec.command(location);
  const child = launch(command, { log, cwd: location.data, detached: true, env });
  child.unref();
  const known = { pid: child.pid, command };
  // written at once, so that the next command knows the server if this one is killed while it waits
  state.servers[spec.key] = { port, process: known };
  writeState(engines, state);
  return known;
}
