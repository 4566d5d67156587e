import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { constants } from 'node:os';
import type { Log } from 'platform/core/log.ts';
import { systemCallFilter, type SystemCallFilter } from './system-call-filter.ts';

export type Command = [file: string, ...args: string[]];

export interface Starter {
  /** Makes of a command line one that confines its process first, and then becomes the program in it. */
  commandOf(command: Command): Command;
  /** The system kills the process when the service ends. Where it does not, the process must watch. */
  endsWithService: boolean;
}

const PERL = '/usr/bin/perl';
/** More than starting two small programs takes on any machine. */
const TRIAL_MS = 30_000;

/**
 * Node cannot install a filter of system calls. Perl can, by number, and Debian and images made of it always have it.
 * The process keeps the filter when it becomes another program, and can never take it off.
 */
const INSTALL = `
my ($prctl, $seccomp, $prlimit64, $service, $filter) = splice @ARGV, 0, 5;
my @instructions = map { [map { $_ eq 'pid' ? $$ : $_ } split / /] } split /,/, $filter;
my $code = join '', map { pack 'SCCL', @$_ } @instructions;
my ($noBytes, $writing) = (pack('QQ', 0, 0), pack 'Q', 0x1ff2);
syscall(0 + $prctl, 1, 9, 0, 0, 0) == 0 or die "PR_SET_PDEATHSIG: $!\\n";
getppid == $service or die "its parent is not the service\\n";
syscall(0 + $prlimit64, 0, 4, $noBytes, 0) == 0 or die "RLIMIT_CORE: $!\\n";
syscall(0 + $prctl, 38, 1, 0, 0, 0) == 0 or die "PR_SET_NO_NEW_PRIVS: $!\\n";
# Where the kernel has it, Landlock keeps the process from the memory of those that it does not confine, and no fd
# is inherited but the standard streams and the channel: landlock_create_ruleset, landlock_restrict_self, close_range.
my $rules = syscall 444, $writing, 8, 0;
syscall 446, $rules, 0 if $rules >= 0;
syscall 436, 4, 0x7fffffff, 0;
syscall(0 + $seccomp, 1, 0, pack 'S x6 P', scalar @instructions, $code) == 0 or die "SECCOMP_SET_MODE_FILTER: $!\\n";
exec { $ARGV[0] } @ARGV or die "exec: $!\\n";
`;

/** Denies the process what the filter denies, and core dumps: one would hold the realms of several organizations. */
export const filtered = ({ program, install: { prctl, seccomp, prlimit64 } }: SystemCallFilter): Starter => ({
  commandOf: (command) => [
    ...([PERL, '-e', INSTALL, '--'] as const),
    ...[prctl, seccomp, prlimit64, process.pid].map(String),
    program.join(','),
    ...command,
  ],
  endsWithService: true,
});

/** Denies the process core dumps. A shell adds variables to the environment; the one here is all that a runner has. */
export const withoutCoreDumps: Starter = {
  commandOf: (command) => [
    '/bin/sh',
    '-c',
    'ulimit -c 0 && exec /usr/bin/env -i "$@"',
    'sh',
    'NODE_CHANNEL_FD=3',
    ...command,
  ],
  endsWithService: false,
};

export const unconfined: Starter = { commandOf: (command) => command, endsWithService: false };

/** What the system does not keep from a process that `filtered` starts. */
function faultsOf(filter: SystemCallFilter): { network?: string; memory?: string } {
  const reach = `
    print syscall(${filter.denied['socket']}, 1, 1, 0) == -1 && $! == ${constants.errno.EPERM} ? '' : 'network ';
    print open(my $memory, '<', '/proc/' . getppid . '/mem') ? 'memory' : '';`;
  const [file, ...args] = filtered(filter).commandOf([PERL, '-e', reach]);
  const { status, signal, error, stderr, stdout } = spawnSync(file, args, {
    env: {},
    timeout: TRIAL_MS,
    encoding: 'utf8',
  });
  if (status !== 0) return { network: error?.message ?? (stderr.trim() || `it ends by ${signal ?? status}`) };
  return {
    ...(stdout.includes('network') && { network: 'the filter has no effect' }),
    ...(stdout.includes('memory') && { memory: 'the kernel has no Landlock' }),
  };
}

const AT_SECURE = 23n;

/**
 * Whether the kernel gave this program privileges of its file (getauxval(3), AT_SECURE), as a node with capabilities
 * has. It then forgets, when a runner becomes this program, that it should end with the service.
 */
function isPrivileged(): boolean {
  try {
    const entries = readFileSync('/proc/self/auxv');
    for (let at = 0; at + 16 <= entries.length; at += 16)
      if (entries.readBigUInt64LE(at) === AT_SECURE) return entries.readBigUInt64LE(at + 8) !== 0n;
  } catch {
    // not told: it may be
  }
  return true;
}

let found: Starter | undefined;

/** The strictest starter that this machine has, found when it is first needed. */
export const strictestStarter = (log: Log): Starter => (found ??= findStarter(log));

interface Asked {
  platform: string;
  filter: SystemCallFilter | undefined;
  exists(program: string): boolean;
  isPrivileged(): boolean;
}

/**
 * @param system what is asked of the machine
 */
export function findStarter(
  log: Log,
  system: Asked = {
    platform: process.platform,
    filter: systemCallFilter(),
    exists: existsSync,
    isPrivileged,
  },
): Starter {
  const { platform, filter, exists } = system;
  let fault = 'only Linux on x64 and arm64 can';
  if (platform === 'linux' && filter) {
    const { network, memory } = exists(PERL) ? faultsOf(filter) : { network: `there is no ${PERL}` };
    if (network === undefined) {
      if (memory !== undefined)
        log.warn({ fault: memory }, 'a fault of V8 would let an agent read the memory of this service');
      return system.isPrivileged() ? { ...filtered(filter), endsWithService: false } : filtered(filter);
    }
    fault = network;
  }
  log.warn({ fault }, 'the network is not denied to runners, so a fault of V8 would give it to an agent');
  return platform === 'linux' && exists('/bin/sh') && exists('/usr/bin/env') ? withoutCoreDumps : unconfined;
}
