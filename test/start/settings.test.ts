import { readFileSync } from 'node:fs';
import { PROCESSES, type ProcessName } from 'platform/core/processes.ts';
import { closedInTheEnd } from 'platform/service/test-end.ts';
import { superviseChild } from '../../launcher/src/child.ts';
import { startStack } from '../support/stack.ts';

it('a process of the launcher is handed the settings that it asks for and what Node reads, and nothing else', async () => {
  const secrets = { WANTED: 'a', OF_ANOTHER_PROCESS: 'b', TZ: 'UTC' };
  const child = superviseChild({ name: 'asking', folder: 'test/start/fakes/asking' }, secrets, () => undefined);
  closedInTheEnd(() => child.stop());
  const { handed, environment } = JSON.parse(await child.ready) as { handed: unknown; environment: string[] };
  expect(handed).toEqual({ settings: { WANTED: 'a' } });
  // NODE_CHANNEL_* are of the channel itself
  expect(environment.filter((name) => !name.startsWith('NODE_CHANNEL_')).sort()).toEqual(['SETTINGS_BY_MESSAGE', 'TZ']);
});

it("no process of the product has a setting or another variable of the launcher's environment in its own", async () => {
  const stack = await startStack({ env: { KAFKA_PASSWORD: 'hidden', CLOUD_SECRET_KEY: 'hidden', TZ: 'UTC' } });
  const names = Object.keys(PROCESSES) as ProcessName[];
  const environments = names.map((name) => readFileSync(`/proc/${stack.pidOf(name)}/environ`, 'utf8').split('\0'));
  const allowed = /^(NODE_(CHANNEL_\w+|COMPILE_CACHE|OPTIONS)|SETTINGS_BY_MESSAGE|TMPDIR|TZ|INIT_CWD)=|^$/;
  expect(environments.map((variables) => variables.filter((variable) => !allowed.test(variable)))).toEqual(
    names.map(() => []),
  );
  await stack.stop();
});
