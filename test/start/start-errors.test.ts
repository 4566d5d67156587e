import { once } from 'node:events';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { PROCESSES } from 'platform/core/processes.ts';
import { lockFile } from 'platform/store/sqlite/file-lock.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { freeAddresses, freePorts } from '../support/addresses.ts';
import { REPOSITORY } from '../support/stack.ts';
import { runToEnd, type ProcessResult } from '../support/run-process.ts';

const LAUNCHER = join(REPOSITORY, 'launcher/src/main.js');
const start = (env: Record<string, string>, args: readonly string[] = [], cwd?: string): Promise<ProcessResult> =>
  runToEnd(process.execPath, [LAUNCHER, ...args], { env, cwd });

describe('a start that fails prints one clear sentence and exits with 1', () => {
  const folder = temporaryFolder();
  const taken: Server = createServer();
  let addresses: Record<string, string>;
  let port: number;
  beforeAll(async () => {
    addresses = await freeAddresses();
    await once(taken.listen(0, '127.0.0.1'), 'listening');
    ({ port } = taken.address() as { port: number });
    writeFileSync(join(folder.path, 'plain-file'), '');
    mkdirSync(join(folder.path, 'used'));
    lockFile(join(folder.path, 'used', 'launcher'));
  });
  afterAll(() => {
    taken.close();
    folder.remove();
  });

  const errorsOf = async (env: Record<string, string>, args: readonly string[] = []): Promise<string[]> => {
    const { code, stderr, stdout } = await start({ ...addresses, DATA_DIR: join(folder.path, 'data'), ...env }, args);
    expect({ code, last: stderr.at(-1), stack: /^ +at /m.test(stderr) }).toEqual({ code: 1, last: '\n', stack: false });
    expect(stdout).not.toContain('Ready');
    return stderr.trimEnd().split('\n');
  };

  it('an unknown argument', async () => {
    expect(await errorsOf({}, ['--port', '9000'])).toEqual([
      'The start failed: Unknown argument --port; npm start -- --help lists what can be set',
    ]);
  });

  it('an unwritable folder', async () => {
    const paths = [join(folder.path, 'plain-file/data'), join(folder.path, 'plain-file'), '/proc/data'];
    expect(await Promise.all(paths.map((path) => errorsOf({ DATA_DIR: path })))).toEqual(
      paths.map((path) => [expect.stringContaining(`The start failed: cannot write in the folder ${path}: `)]),
    );
  });

  it('a folder in use by another start', async () => {
    expect(await errorsOf({ DATA_DIR: join(folder.path, 'used') })).toEqual([
      `The start failed: The data folder ${join(folder.path, 'used')} is in use by another start`,
    ]);
  });

  it('ports in use: names the address, the process and the setting to change it', async () => {
    expect(await errorsOf({ GATEWAY_LISTEN: `127.0.0.1:${port}`, MEMORY_LISTEN: `127.0.0.1:${port}` })).toEqual([
      `gateway: The address 127.0.0.1:${port} is in use by another program; GATEWAY_LISTEN sets another`,
      `memory: The address 127.0.0.1:${port} is in use by another program; MEMORY_LISTEN sets another`,
    ]);
  });

  it('wrong settings of several processes: lists all of them, each once', async () => {
    expect(
      await errorsOf({
        LOG_LEVEL: 'loud',
        LEASE_MS: 'long',
        RUNNERS: '0',
        AUTH_LISTEN: '8080',
        GATEWAY_LISTEN: '127.0.0.1:80800',
      }),
    ).toEqual([
      'gateway, agents, memory, credits, auth: LOG_LEVEL must be one of silent, error, warn, info, debug, not "loud"',
      'gateway: GATEWAY_LISTEN must be host:port with a port from 0 to 65535, for example 127.0.0.1:9000, not "127.0.0.1:80800"',
      'agents, memory, credits, auth: LEASE_MS must be an integer from 1000 to 300000, not "long"',
      'agents: RUNNERS must be an integer from 1 to 64, not "0"',
      'auth: AUTH_LISTEN must be host:port with a port from 0 to 65535, for example 127.0.0.1:9000, not "8080"',
    ]);
  });

  it.each([
    [
      'MongoDB',
      'MONGODB_URL',
      (address: string) => `mongodb://app:hidden@${address}/?replicaSet=rs0`,
      'cannot be reached',
    ],
    ['Kafka', 'KAFKA_BROKERS', (address: string) => address, 'cannot be used'],
  ])(
    '%s does not listen: names its address once for all services, without credentials',
    async (server, setting, url, what) => {
      const address = `127.0.0.1:${(await freePorts(1))[0]}`;
      expect(await errorsOf({ [setting]: url(address) })).toEqual([
        expect.stringMatching(
          new RegExp(`^agents, memory, credits, auth: ${server} at ${address} ${what}: [^@]*ECONNREFUSED ${address}$`),
        ),
      ]);
    },
  );

  it('no servers where EMBEDDED refuses files: names each setting that is missing, and the services that need it', async () => {
    const missing = (name: string) => `${name} is missing, and EMBEDDED=refuse allows no SQLite file instead`;
    expect(await errorsOf({ EMBEDDED: 'refuse', REDIS_URL: '' })).toEqual([
      `agents, memory, credits, auth: ${missing('MONGODB_URL')}`,
      `agents, memory, credits, auth: ${missing('KAFKA_BROKERS')}`,
      `credits: ${missing('REDIS_URL')}`,
    ]);
  });

  it('a service on a random port: the others could not find it', async () => {
    expect(await errorsOf({ AUTH_LISTEN: '127.0.0.1:0', AUTH_ADDRESS: '' })).toEqual([
      'The start failed: AUTH_LISTEN must name a port, not "127.0.0.1:0": the other processes find auth by it',
    ]);
  });

  it.each([
    ['npm was called', { INIT_CWD: folder.path }, '/'],
    ['the launcher was called without npm', {}, folder.path],
  ])('a relative DATA_DIR is relative to the folder in which %s', async (how, given, cwd) => {
    const name = how.replaceAll(' ', '-');
    expect((await start({ ...addresses, LOG_LEVEL: 'loud', DATA_DIR: name, ...given }, [], cwd)).code).toBe(1);
    expect(existsSync(join(folder.path, name, 'keys'))).toBe(true);
  });
});

describe('npm start -- --help', () => {
  it('lists the settings of every process, common settings once, and starts nothing', async () => {
    const { code, stdout, stderr } = await start({}, ['--help']);
    expect([code, stderr]).toEqual([0, '']);
    for (const name of Object.keys(PROCESSES))
      expect(stdout).toMatch(
        new RegExp(`^${name}:$[^]*^  ${name.toUpperCase()}_LISTEN \\(default "127.0.0.1:\\d+"\\)\n {6}\\w`, 'm'),
      );
    expect(
      stdout.match(/^ {2}(DATA_DIR|LOG_LEVEL|DRAIN_MS|MAX_OLD_SPACE_MB|RUNNERS|LEASE_MS|CREDITS_ADDRESS) /gm)?.sort(),
    ).toEqual([
      '  CREDITS_ADDRESS ',
      '  DATA_DIR ',
      '  DRAIN_MS ',
      '  LEASE_MS ',
      '  LOG_LEVEL ',
      '  MAX_OLD_SPACE_MB ',
      '  RUNNERS ',
    ]);
  });
});
