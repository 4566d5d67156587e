import { join } from 'node:path';
import type { Env } from 'platform/core/config.ts';
import { makeFolder } from 'platform/core/folder.ts';
import { StartError } from 'platform/core/start-error.ts';
import { runStep, outputOf, succeeds } from './command.ts';
import { exportsOf, SERVERS } from './servers.ts';
import type { PrintProgress } from './progress.ts';
import { withLock, readState, runningOf, writeState } from './state.ts';

const COMPOSE = ['docker', 'compose', '--file', join(import.meta.dirname, '../../deploy/compose.yaml')];
const URLS = {
  mongodb: 'mongodb://127.0.0.1:27017/?replicaSet=rs0',
  redis: 'redis://127.0.0.1:6379',
  kafka: '127.0.0.1:9092',
};

/**
 * Starts deploy/compose.yaml and waits until its servers are healthy.
 * @returns shell lines that export the settings of the services
 * @throws StartError
 */
export async function composeUp(engines: string, env: Env, print: PrintProgress): Promise<string> {
  if (!(await succeeds(['docker', 'info'], env)))
    throw new StartError('Docker does not answer (docker info); npm run engines -- up works without Docker');
  if (!(await succeeds([...COMPOSE, 'version'], env)))
    throw new StartError(
      'Docker has no compose plugin: install the package docker-compose-plugin (Debian: docker-compose)',
    );
  makeFolder(engines);
  return withLock(engines, print, async () => {
    const state = readState(engines);
    if (SERVERS.some((spec) => runningOf(state, spec)))
      throw new StartError('The servers of npm run engines -- up are running; npm run engines -- down stops them');
    print('starting deploy/compose.yaml');
    writeState(engines, { ...state, docker: true });
    try {
      await runStep('docker compose up', [...COMPOSE, 'up', '--detach', '--wait', '--quiet-pull'], env);
    } catch (error) {
      // stops what was started just now, but not a composition that ran before
      if (!state.docker) await composeDown(env, print, false).catch((fault: Error) => print(fault.message));
      writeState(engines, state);
      throw error;
    }
    return exportsOf(({ key }) => URLS[key]);
  });
}

export async function composeDown(env: Env, print: PrintProgress, purge: boolean): Promise<void> {
  print('stopping deploy/compose.yaml');
  await runStep('docker compose down', [...COMPOSE, 'down', ...(purge ? ['--volumes'] : [])], env);
}

/** The same as status(), for the servers of deploy/compose.yaml. */
export async function composeStatus(env: Env): Promise<{ text: string; allUp: boolean }> {
  const running = await outputOf([...COMPOSE, 'ps', '--services', '--status', 'running'], env).then(
    (text) => text.split('\n'),
    (): string[] => [],
  );
  const lines = SERVERS.map(
    ({ key, name }) =>
      `${name.padEnd(8)}  ${running.includes(key) ? `${URLS[key]}  (docker compose)` : 'is not running'}\n`,
  );
  return { text: lines.join(''), allUp: SERVERS.every(({ key }) => running.includes(key)) };
}
