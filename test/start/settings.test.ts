import { readFileSync } from 'node:fs';
import { PROCESSES, type ProcessName } from 'platform/core/processes.ts';
import { closedInTheEnd } from 'platform/service/test-end.ts';
import { superviseChild } from '../../launcher/src/child.ts';
import { commandOf } from '../support/process-tree.ts';
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
  const allowed = (
    'INIT_CWD LD_LIBRARY_PATH NODE_CHANNEL_FD NODE_CHANNEL_SERIALIZATION_MODE NODE_COMPILE_CACHE NODE_EXTRA_CA_CERTS ' +
    'NODE_OPTIONS OPENSSL_CONF SETTINGS_BY_MESSAGE SSL_CERT_DIR SSL_CERT_FILE TMPDIR TZ'
  ).split(' ');
  for (const name of Object.keys(PROCESSES) as ProcessName[]) {
    const environment = readFileSync(`/proc/${stack.pidOf(name)}/environ`, 'utf8')
      .split('\0')
      .filter(Boolean);
    const names = environment.map((variable) => variable.slice(0, variable.indexOf('=')));
    expect([name, names.filter((variable) => !allowed.includes(variable))]).toEqual([name, []]);
  }
  await stack.stop();
});

it("the heap of every process has the launcher's bounds", async () => {
  const stack = await startStack({ env: { MAX_OLD_SPACE_MB: '300' } });
  for (const name of Object.keys(PROCESSES) as ProcessName[])
    expect(commandOf(stack.pidOf(name))).toContain(' --max-old-space-size=300 --max-semi-space-size=4 ');
  await stack.stop();
});
