import { spawnSync } from 'node:child_process';
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fairScheduler } from 'platform/core/fair-scheduler.ts';
import { makeLog } from 'platform/core/log.ts';
import {
  filtered,
  findStarter,
  unconfined,
  withoutCoreDumps,
  type Starter,
} from '../../../src/runtimes/runners/confinement.ts';
import { startRunner } from '../../../src/runtimes/runners/runner.ts';
import { systemCallFilter } from '../../../src/runtimes/runners/system-call-filter.ts';
import { LIMITS } from './pool-fixture.ts';
import type { Reached, Targets } from './reaching-runner.ts';

const PROGRAM = join(import.meta.dirname, 'reaching-runner.ts');
const log = makeLog('agents', 'silent');

/** Fails where the system cannot confine: a machine that tests must be able to. */
function confining(): Starter {
  const filter = systemCallFilter();
  if (!filter) throw new Error(`These tests need Linux on x64 or arm64: nothing is confined on ${process.arch}`);
  return filtered(filter);
}

function run(starter: Starter, file: string, ...given: string[]): string {
  const [program, ...args] = starter.commandOf([file, ...given]);
  const { stdout, stderr, status } = spawnSync(program, args, { env: { NODE_CHANNEL_FD: '3' }, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${program} exits with ${status}: ${stderr}`);
  return stdout;
}
const runPerl = (starter: Starter, code: string): unknown => JSON.parse(run(starter, '/usr/bin/perl', '-e', code));

describe('a runner that goes wherever it can', () => {
  let folder: string;
  let tcp: Server;
  let unix: Server;
  let udp: UdpSocket;
  let nameServer: UdpSocket;
  let targets: Targets;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'confinement-'));
    const greeting = (): Server => createServer((socket) => socket.on('error', () => undefined).end('hello'));
    tcp = greeting().listen(0, '127.0.0.1');
    unix = greeting().listen(join(folder, 'socket'));
    udp = createSocket('udp4').bind(0, '127.0.0.1');
    udp.on('message', (_, { port, address }) => udp.send('pong', port, address));
    nameServer = createSocket('udp4').bind(0, '127.0.0.1');
    nameServer.on('message', (query, { port, address }) => {
      const answer = Buffer.from(query);
      // A response (QR) that no such name exists (RCODE 3).
      answer.writeUInt16BE(0x8183, 2);
      nameServer.send(answer, port, address);
    });
    await Promise.all([tcp, unix, udp, nameServer].map((socket) => once(socket, 'listening')));
    targets = {
      tcpPort: (tcp.address() as AddressInfo).port,
      udpPort: udp.address().port,
      nameServerPort: nameServer.address().port,
      unixPath: join(folder, 'socket'),
      pid: process.pid,
    };
  });
  afterAll(() => {
    for (const socket of [tcp, unix, udp, nameServer]) socket.close();
    rmSync(folder, { recursive: true });
  });

  async function reach(starter?: Starter): Promise<Reached> {
    const runner = startRunner({
      memoryMb: 64,
      cwd: folder,
      log,
      schedule: fairScheduler(),
      program: PROGRAM,
      starter,
    });
    try {
      const assignment = {
        organizationId: 'one',
        runtime: { type: 'expression', source: 'reach' },
        argsText: JSON.stringify(targets),
        ...{ trace: false, operations: [], maxToolCalls: 0 },
        limits: LIMITS,
      };
      const result = await runner.run(assignment, new AbortController().signal);
      if (result.outcome !== 'succeeded') throw new Error(JSON.stringify(result));
      return JSON.parse(result.outputText) as Reached;
    } finally {
      runner.kill();
      await runner.exited;
    }
  }

  it('is refused everything by the operating system', async () => {
    expect(await reach()).toEqual({
      tcp: 'EPERM',
      // Node gives it no threads.
      tcpOfAThread: 'ERR_ACCESS_DENIED',
      udp: 'EPERM',
      nameServer: 'ECONNREFUSED',
      unixSocket: 'EPERM',
      listening: 'EPERM',
      signal: 'EPERM',
      signalToItself: 'reached',
    });
  });

  it('is refused the same in a thread, where it may have one', async () => {
    expect(await reach({ ...confining(), endsWithService: false })).toMatchObject({
      tcp: 'EPERM',
      tcpOfAThread: 'EPERM',
    });
  });

  it('reaches everything where nothing confines it', async () => {
    expect(await reach(unconfined)).toEqual({
      tcp: 'reached',
      tcpOfAThread: 'reached',
      udp: 'reached',
      nameServer: 'reached',
      unixSocket: 'reached',
      listening: 'reached',
      signal: 'reached',
      signalToItself: 'reached',
    });
  });
});

describe('a confined process', () => {
  it('is refused each system call that is denied', () => {
    const { denied } = systemCallFilter()!;
    const calls = Object.entries(denied).map(([name, number]) => `[${number}, '${name}']`);
    const code = `
      my @others;
      for ([39, 'none'], ${calls.join(', ')}) {
        my ($number, $name) = @$_;
        push @others, $name unless syscall($number, 0, 0, 0, 0, 0, 0) == -1 && $! == 1;
      }
      print '["', join('","', @others), '"]';`;
    expect(runPerl(confining(), code)).toEqual(['none']);
  });

  it.each([
    [
      'what is newer than Linux 4.18, as io_uring and pidfd_getfd',
      'syscall($_, 0, 0, 0) == -1 && $! == 38 or $no = 1 for 425, 438, 9999',
    ],
    ['a write to a file', 'open(my $file, ">", "/dev/null") || $! != 1 and $no = 1'],
    ['a write to the memory of its parent', 'open(my $file, "+<", "/proc/" . getppid . "/mem") || $! != 1 and $no = 1'],
    ['a truncating read', 'require Fcntl; sysopen(my $file, "/dev/null", Fcntl::O_TRUNC()) || $! != 1 and $no = 1'],
    ['a signal to its group', 'kill(0, 0) || $! != 1 and $no = 1'],
    ['a signal to all', 'kill(0, -1) || $! != 1 and $no = 1'],
    ['a new process', 'my $pid = fork; exit if defined $pid && $pid == 0; defined $pid || $! != 1 and $no = 1'],
    ['limits for its parent', 'prlimit(getppid) == -1 && $! == 1 or $no = 1'],
    ['text for the terminal', 'my $x = "x"; ioctl(STDIN, 0x5412, $x) || $! != 1 and $no = 1'],
    ['an owner of a file, who would get its signals', 'fcntl(STDIN, 8, getppid) || $! != 1 and $no = 1'],
    ['a lock', 'my $lock = pack("ssx4qqix4", 0, 0, 0, 0, 0); fcntl(STDIN, 6, $lock) || $! != 1 and $no = 1'],
  ])('is refused %s', (_, attempt) => {
    const { install } = systemCallFilter()!;
    const code = `sub prlimit { syscall(${install.prlimit64}, $_[0], 4, 0, 0) } my $no = 0; ${attempt}; print $no`;
    expect(runPerl(confining(), code)).toBe(0);
    expect(runPerl(unconfined, code)).toBe(1);
  });

  it('keeps the filter when it becomes another program', () => {
    const code = 'socket(my $socket, 1, 1, 0) and die; print $! + 0';
    const twice: Starter = {
      ...confining(),
      commandOf: (command) => confining().commandOf(['/usr/bin/env', ...command]),
    };
    expect(runPerl(twice, code)).toBe(1);
  });

  it('inherits nothing but its standard streams and the channel', () => {
    const inherited = (starter: Starter): string[] => {
      const [program, ...args] = starter.commandOf(['/bin/ls', '/proc/self/fd']);
      const { stdout } = spawnSync(program, args, { stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe'] });
      return stdout.toString().trim().split('\n');
    };
    // The last one is the folder that `ls` reads.
    expect(inherited(confining())).toEqual(['0', '1', '2', '3', '4']);
    expect(inherited(unconfined)).toContain('5');
  });
});

describe('the start of a process', () => {
  /** The soft and the hard limit in the text of `/proc/<pid>/limits`. */
  const coreLimit = (limits: string) => /^Max core file size +(\S+) +(\S+)/m.exec(limits)?.slice(1, 3);
  const filter = systemCallFilter();
  const isPrivileged = () => false;

  function found(system?: Parameters<typeof findStarter>[1]): { starter: Starter; warnings: unknown[][] } {
    const warnings: unknown[][] = [];
    const warned = { ...log, warn: (...line: unknown[]) => void warnings.push(line) } as typeof log;
    return { starter: findStarter(warned, system), warnings };
  }

  it.each(Object.entries({ filtered: confining(), withoutCoreDumps }))('forbids core dumps: %s', (_, starter) => {
    const printed = run(starter, '/bin/cat', '/proc/self/limits', '/proc/self/environ');
    expect(coreLimit(printed)).toEqual(['0', '0']);
    expect(printed.endsWith('NODE_CHANNEL_FD=3\0')).toBe(true);
    expect(printed).not.toContain('PWD=');
  });

  it.each([
    ['other systems', { platform: 'darwin', filter, exists: () => true, isPrivileged }, unconfined, 'only Linux'],
    [
      'other processors',
      { platform: 'linux', filter: undefined, exists: existsSync, isPrivileged },
      withoutCoreDumps,
      'only Linux',
    ],
    [
      'systems without Perl',
      { platform: 'linux', filter, exists: (file: string) => !file.includes('perl'), isPrivileged },
      withoutCoreDumps,
      'there is no /usr/bin/perl',
    ],
    [
      'systems whose filters have no effect',
      { platform: 'linux', filter: { ...filter!, program: ['6 0 0 2147418112'] }, exists: existsSync, isPrivileged },
      withoutCoreDumps,
      'the filter has no effect',
    ],
    [
      'systems that take no filter',
      { platform: 'linux', filter: { ...filter!, program: ['0 0 0 0'] }, exists: existsSync, isPrivileged },
      withoutCoreDumps,
      'SECCOMP_SET_MODE_FILTER: Invalid argument',
    ],
  ])('is possible on %s, and one line says that the network is not denied', (_, system, starter, fault) => {
    const { starter: ofSystem, warnings } = found(system);
    expect(ofSystem).toBe(starter);
    expect(warnings).toEqual([[{ fault: expect.stringContaining(fault) }, expect.stringContaining('not denied')]]);
  });

  it.each([true, false])(
    'leaves it to watch the service only where node has privileges of its own: %s',
    (privileged) => {
      const system = { platform: 'linux', filter, exists: existsSync, isPrivileged: () => privileged };
      const { starter } = found(system);
      expect(starter.commandOf(['node'])[0]).toBe('/usr/bin/perl');
      expect(starter.endsWithService).toBe(!privileged);
      expect(found().starter.endsWithService).toBe(true);
    },
  );

  it('keeps it from the memory of the service, or says that this kernel cannot', () => {
    const hasLandlock = runPerl(unconfined, 'print 0 + (syscall(444, 0, 0, 1) > 0)') === 1;
    const read = 'print 0 + defined open(my $memory, "<", "/proc/" . getppid . "/mem")';
    // Yama, as on Ubuntu, keeps it from everybody.
    const isReadable = runPerl(unconfined, read) === 1 && !hasLandlock;
    const { warnings, starter } = found();
    expect(starter.commandOf(['node'])[0]).toBe('/usr/bin/perl');
    expect(runPerl(starter, read)).toBe(isReadable ? 1 : 0);
    expect(warnings).toEqual(
      isReadable ? [[{ fault: 'the kernel has no Landlock' }, expect.stringContaining('memory')]] : [],
    );
  });
});
