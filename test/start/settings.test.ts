import { readFileSync } from 'node:fs';
import { credentials, makeClientConstructor } from '@grpc/grpc-js';
import { HealthService } from 'proto/grpc/health/v1/health.ts';
import { PROCESSES, settingOf, type ProcessName } from 'platform/core/processes.ts';
import { closedInTheEnd } from 'platform/service/test-end.ts';
import { superviseChild } from '../../launcher/src/child.ts';
import { freePorts } from '../support/addresses.ts';
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
  const stack = await startStack({
    env: { KAFKA_PASSWORD: 'hidden', CLOUD_SECRET_KEY: 'hidden', TZ: 'UTC', DATADIR: 'x' },
  });
  expect(stack.output()).toContain('DATADIR is no setting, so it changes nothing; did you mean DATA_DIR?\n');
  const allowed = (
    'INIT_CWD LD_LIBRARY_PATH MALLOC_ARENA_MAX NODE_CHANNEL_FD NODE_CHANNEL_SERIALIZATION_MODE NODE_COMPILE_CACHE ' +
    'NODE_EXTRA_CA_CERTS NODE_OPTIONS OPENSSL_CONF SETTINGS_BY_MESSAGE SSL_CERT_DIR SSL_CERT_FILE TMPDIR TZ'
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

it("the heap of every process has the launcher's bounds, and each service tells its health without TLS", async () => {
  const services = (Object.keys(PROCESSES) as ProcessName[]).filter((name) => name !== 'gateway');
  const ports = await freePorts(services.length);
  const listen = services.map((name, i) => [settingOf(name, 'HEALTH_LISTEN'), `127.0.0.1:${ports[i]}`]);
  const stack = await startStack({ env: { MAX_OLD_SPACE_MB: '300', ...Object.fromEntries(listen) } });
  for (const [i, name] of services.entries())
    expect([name, await healthAt(`127.0.0.1:${ports[i]}`, name)]).toEqual([name, 'SERVING']);
  for (const name of Object.keys(PROCESSES) as ProcessName[]) {
    const semiSpaceMb = name === 'gateway' || name === 'agents' ? 16 : 4;
    expect(commandOf(stack.pidOf(name))).toContain(
      ` --max-old-space-size=300 --max-semi-space-size=${semiSpaceMb} --heap-growing-percent=50 `,
    );
  }
  await stack.stop();
});

/** What a probe of Kubernetes learns of a service. */
function healthAt(address: string, name: ProcessName): Promise<unknown> {
  const service = `${name}.v1.${name[0]?.toUpperCase()}${name.slice(1)}Service`;
  const client = new (makeClientConstructor(HealthService, 'Health'))(address, credentials.createInsecure());
  closedInTheEnd(() => client.close());
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  client.check?.({ service }, (error: Error | null, reply: { status: string }) =>
    error ? reject(error) : resolve(reply.status),
  );
  return promise;
}
