import { constants } from 'node:os';

/** The number of a system call on x64 and on arm64, which has no old forms of some. */
type Numbers = readonly [x64: number, arm64?: number];

/** What a runner never does, and somebody who has broken out of V8 would: refused whatever the arguments. */
const DENIED: Readonly<Record<string, Readonly<Record<string, Numbers>>>> = {
  'reach the network, or a process that listens on this machine': {
    socket: [41, 198],
    socketpair: [53, 199],
    connect: [42, 203],
    bind: [49, 200],
    listen: [50, 201],
    accept: [43, 202],
    accept4: [288, 242],
  },
  'start, read, steer or slow down another process of the same user': {
    fork: [57],
    vfork: [58],
    ptrace: [101, 117],
    process_vm_readv: [310, 270],
    process_vm_writev: [311, 271],
    kcmp: [312, 272],
    tkill: [200, 130],
    rt_sigqueueinfo: [129, 138],
    rt_tgsigqueueinfo: [297, 240],
    setpriority: [141, 140],
    ioprio_set: [251, 30],
    sched_setparam: [142, 118],
    sched_setscheduler: [144, 119],
    sched_setattr: [314, 274],
    sched_setaffinity: [203, 122],
    migrate_pages: [256, 238],
    move_pages: [279, 239],
  },
  'share memory or messages with one': {
    shmget: [29, 194],
    shmctl: [31, 195],
    shmat: [30, 196],
    semget: [64, 190],
    semctl: [66, 191],
    semop: [65, 193],
    semtimedop: [220, 192],
    msgget: [68, 186],
    msgctl: [71, 187],
    msgrcv: [70, 188],
    msgsnd: [69, 189],
    mq_open: [240, 180],
    mq_unlink: [241, 181],
  },
  'change a file, or lock one': {
    creat: [85],
    mkdir: [83],
    mkdirat: [258, 34],
    mknod: [133],
    mknodat: [259, 33],
    rmdir: [84],
    unlink: [87],
    unlinkat: [263, 35],
    rename: [82],
    renameat: [264, 38],
    renameat2: [316, 276],
    link: [86],
    linkat: [265, 37],
    symlink: [88],
    symlinkat: [266, 36],
    chmod: [90],
    fchmod: [91, 52],
    fchmodat: [268, 53],
    chown: [92],
    fchown: [93, 55],
    lchown: [94],
    fchownat: [260, 54],
    truncate: [76, 45],
    setxattr: [188, 5],
    lsetxattr: [189, 6],
    fsetxattr: [190, 7],
    removexattr: [197, 14],
    lremovexattr: [198, 15],
    fremovexattr: [199, 16],
    utime: [132],
    utimes: [235],
    futimesat: [261],
    utimensat: [280, 88],
    flock: [73, 32],
  },
  // Many need a privilege, which a service that runs as root has. `request_key` lets the kernel look up names.
  'use the parts of the kernel in which most faults are found, or set up the machine': {
    bpf: [321, 280],
    perf_event_open: [298, 241],
    userfaultfd: [323, 282],
    add_key: [248, 217],
    request_key: [249, 218],
    keyctl: [250, 219],
    unshare: [272, 97],
    setns: [308, 268],
    mount: [165, 40],
    umount2: [166, 39],
    pivot_root: [155, 41],
    chroot: [161, 51],
    open_by_handle_at: [304, 265],
    fanotify_init: [300, 262],
    modify_ldt: [154],
    personality: [135, 92],
    iopl: [172],
    ioperm: [173],
    init_module: [175, 105],
    finit_module: [313, 273],
    delete_module: [176, 106],
    kexec_load: [246, 104],
    kexec_file_load: [320],
    reboot: [169, 142],
    vhangup: [153, 58],
    swapon: [167, 224],
    swapoff: [168, 225],
    acct: [163, 89],
    syslog: [103, 116],
    quotactl: [179, 60],
    settimeofday: [164, 170],
    clock_settime: [227, 112],
    adjtimex: [159, 171],
    clock_adjtime: [305, 266],
    sethostname: [170, 161],
    setdomainname: [171, 162],
  },
};

/** The process itself: its id is known when it installs the filter. */
const OWN_PID = 'pid';
const CLONE_THREAD = 0x10000;
const CLONE_NEW_NAMESPACES = 0x7e020000;
/** O_WRONLY, O_RDWR, O_CREAT and O_TRUNC. */
const WRITING = 0x243;

/** What is allowed with some values of one argument: those that are, after `mask`, one of `values`. */
const BOUNDED: Readonly<
  Record<string, { numbers: Numbers; argument: number; mask?: number; values: readonly (number | typeof OWN_PID)[] }>
> = {
  // Writing also means the memory of the service, /proc/<pid>/mem.
  open: { numbers: [2], argument: 1, mask: WRITING, values: [0] },
  openat: { numbers: [257, 56], argument: 2, mask: WRITING, values: [0] },
  clone: { numbers: [56, 220], argument: 0, mask: CLONE_NEW_NAMESPACES | CLONE_THREAD, values: [CLONE_THREAD] },
  kill: { numbers: [62, 129], argument: 0, values: [OWN_PID] },
  tgkill: { numbers: [234, 131], argument: 0, values: [OWN_PID] },
  prlimit64: { numbers: [302, 261], argument: 0, values: [0] },
  // F_DUPFD to F_SETFL, and F_DUPFD_CLOEXEC. Others lock files, or send a signal to any process (F_SETOWN).
  fcntl: { numbers: [72, 25], argument: 1, values: [0, 1, 2, 3, 4, 1030] },
  // TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX. Others type into a terminal (TIOCSTI), or send signals.
  ioctl: { numbers: [16, 29], argument: 1, values: [0x5401, 0x5413, 0x541b, 0x5421, 0x5450, 0x5451] },
};

interface Architecture {
  /** AUDIT_ARCH_... of linux/audit.h. */
  id: number;
  /** The last system call of Linux 4.18, the oldest that Node 24 supports. */
  last: number;
  /** Those that install a filter. */
  install: { prctl: number; seccomp: number; prlimit64: number };
  column: 0 | 1;
}
const ARCHITECTURES: Readonly<Record<string, Architecture>> = {
  x64: { id: 0xc000003e, last: 334, install: { prctl: 157, seccomp: 317, prlimit64: 302 }, column: 0 },
  arm64: { id: 0xc00000b7, last: 293, install: { prctl: 167, seccomp: 277, prlimit64: 261 }, column: 1 },
};

export interface SystemCallFilter {
  /** Instructions of classic BPF as "code jt jf k", with `pid` for the id of the process that installs them. */
  program: string[];
  install: Architecture['install'];
  /** Numbers of what is refused whatever the arguments, by name. */
  denied: Readonly<Record<string, number>>;
}

const LOAD = 0x20;
const AND = 0x54;
const IS = 0x15;
const IS_GREATER = 0x25;
const RETURN = 0x06;
const ALLOW = 0x7fff0000;
const ERROR = 0x00050000;
const loadNumber = `${LOAD} 0 0 0`;
const loadArchitecture = `${LOAD} 0 0 4`;
/** The lower half of it: all that the kernel reads of those above. */
const loadArgument = (index: number): string => `${LOAD} 0 0 ${16 + 8 * index}`;
const allow = `${RETURN} 0 0 ${ALLOW}`;
const refuse = `${RETURN} 0 0 ${ERROR | constants.errno.EPERM}`;
const unknown = `${RETURN} 0 0 ${ERROR | constants.errno.ENOSYS}`;

/**
 * The filter of system calls under which runners run (seccomp(2)); undefined for processors that it does not know.
 *
 * Calls of another architecture than the process's own (int 0x80) are refused. What is newer than Linux 4.18 does not
 * exist: Node works without it, and nobody has to know whether it opens another way (io_uring and pidfd_getfd do). The
 * numbers of x32 are beyond as well.
 */
export function systemCallFilter(arch: string = process.arch): SystemCallFilter | undefined {
  const architecture = ARCHITECTURES[arch];
  if (!architecture) return undefined;
  const { id, last, install, column } = architecture;
  const denied = Object.fromEntries(
    Object.values(DENIED)
      .flatMap((calls) => Object.entries(calls))
      .flatMap(([name, numbers]) => (numbers[column] === undefined ? [] : [[name, numbers[column]] as const])),
  );
  const bounded = Object.values(BOUNDED).flatMap(({ numbers, argument, mask, values }) => {
    if (numbers[column] === undefined) return [];
    const look = [
      loadArgument(argument),
      ...(mask === undefined ? [] : [`${AND} 0 0 ${mask}`]),
      ...values.flatMap((value) => [`${IS} 0 1 ${value}`, allow]),
      refuse,
    ];
    return [`${IS} 0 ${look.length} ${numbers[column]}`, ...look];
  });
  const program = [
    loadArchitecture,
    `${IS} 1 0 ${id}`,
    refuse,
    loadNumber,
    `${IS_GREATER} 0 1 ${last}`,
    unknown,
    ...Object.values(denied).flatMap((number) => [`${IS} 0 1 ${number}`, refuse]),
    ...bounded,
    allow,
  ];
  return { program, install, denied };
}
