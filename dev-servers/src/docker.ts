import { join } from 'node:path';
import type { Env } from 'platform/core/config.ts';
import { makeFolder } from 'platform/core/folder.ts';
import { StartError } from 'platform/core/start-error.ts';
import { must, outputOf, succeeds } from './command.ts';
import { exportsOf, SERVERS } from './servers.ts';
import type { Say } from './say.ts';
import { alone, readState, runningOf, writeState } from './state.ts';

const COMPOSE = ['docker', 'compose', '--file', join(import.meta.dirname, '../../deploy/compose.yaml')];
const URLS = {
  mongodb: 'mongodb://127.0.0.1:27017/?replicaSet=rs0',
  redis: 'redis://127.0.0.1:6379',
  kafka: '127.0.0.1:9092',
};

/** Starts deploy/compose.yaml and waits until its servers are healthy. @returns the lines to evaluate. @throws StartError */
export async function composeUp(engines: string, env: Env, say: Say): Promise<string> {
  if (!(await succeeds(['docker', 'info'], env)))
    throw new StartError('No Docker engine answers (docker info); npm run engines -- up does without');
  if (!(await succeeds([...COMPOSE, 'version'], env)))
    throw new StartError(
      'Docker has no compose plugin: install the package docker-compose-plugin (Debian: docker-compose)',
    );
  makeFolder(engines);
  return alone(engines, say, async () => {
    const state = readState(engines);
    if (SERVERS.some((recipe) => runningOf(state, recipe)))
      throw new StartError('Servers of npm run engines -- up run; npm run engines -- down ends them');
    say('starting deploy/compose.yaml');
    writeState(engines, { ...state, docker: true });
    try {
      await must('docker compose up', [...COMPOSE, 'up', '--detach', '--wait', '--quiet-pull'], env);
    } catch (error) {
      // what it has begun; a composition that ran before goes on
      if (!state.docker) await composeDown(env, say, false).catch((fault: Error) => say(fault.message));
      writeState(engines, state);
      throw error;
    }
    return exportsOf(({ key }) => URLS[key]);
  });
}

export async function composeDown(env: Env, say: Say, purge: boolean): Promise<void> {
  say('ending deploy/compose.yaml');
  await must('docker compose down', [...COMPOSE, 'down', ...(purge ? ['--volumes'] : [])], env);
}

/** Of the composition. */
export async function composeStatus(env: Env): Promise<{ text: string; allUp: boolean }> {
  const running = await outputOf([...COMPOSE, 'ps', '--services', '--status', 'running'], env).then(
    (text) => text.split('\n'),
    (): string[] => [],
  );
  const lines = SERVERS.map(
    ({ key, name }) =>
      `${name.padEnd(8)}  ${running.includes(key) ? `${URLS[key]}  (docker compose)` : 'does not run'}\n`,
  );
  return { text: lines.join(''), allUp: SERVERS.every(({ key }) => running.includes(key)) };
}
