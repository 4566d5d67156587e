import { systemCallFilter } from '../../../src/runtimes/runners/system-call-filter.ts';

const PID = 4_321;
const RESULTS: Readonly<Record<number, string>> = { 0x7fff0000: 'allowed', 0x00050001: 'EPERM', 0x00050026: 'ENOSYS' };

/** What the kernel would do with a system call: so each processor's filter is tested on any other one. */
function decide(program: string[], call: { arch: number; number: number; args?: bigint[] }): string {
  const { arch, number, args = [] } = call;
  const data = new DataView(new ArrayBuffer(64));
  data.setUint32(0, number, true);
  data.setUint32(4, arch, true);
  args.forEach((value, i) => data.setBigUint64(16 + 8 * i, value, true));
  let value = 0;
  for (let at = 0; at < program.length; at++) {
    const [code, jumpIfTrue, jumpIfFalse, k] = program[at]!.split(' ').map((word) =>
      word === 'pid' ? PID : Number(word),
    ) as [number, number, number, number];
    if (code === 0x20) value = data.getUint32(k, true);
    else if (code === 0x54) value = (value & k) >>> 0;
    else if (code === 0x15) at += value === k ? jumpIfTrue : jumpIfFalse;
    else if (code === 0x25) at += value > k ? jumpIfTrue : jumpIfFalse;
    else if (code === 0x06) return RESULTS[k] ?? `unknown result ${k}`;
    else throw new Error(`No instruction of the filter: ${program[at]}`);
  }
  throw new Error('The filter ends without a result');
}

/** The numbers are those of the headers of Linux. */
const X64 = {
  arch: 0xc000003e,
  open: 2,
  openat: 257,
  clone: 56,
  kill: 62,
  tgkill: 234,
  fcntl: 72,
  ioctl: 16,
  last: 334,
};
const ARM64 = { arch: 0xc00000b7, openat: 56, clone: 220, kill: 129, tgkill: 131, fcntl: 25, ioctl: 29, last: 293 };
const HIGH = 0x1_0000_0000n;

describe.each([
  ['x64', X64, [41, 42, 43, 49, 50, 53, 57, 58, 85, 101, 310, 311, 321, 272], 0xc00000b7],
  ['arm64', ARM64, [198, 199, 200, 201, 202, 203, 242, 117, 270, 271, 280, 97], 0xc000003e],
] as const)('the filter of system calls on %s', (name, calls, denied, otherArch) => {
  const { program } = systemCallFilter(name)!;
  const of = (number: number, ...args: bigint[]) => decide(program, { arch: calls.arch, number, args });

  it('refuses what reaches the network and other processes', () => {
    expect(denied.map((number) => of(number))).toEqual(denied.map(() => 'EPERM'));
  });

  it('refuses every call of another architecture', () => {
    for (const arch of [otherArch, 0x40000003, 0x40000028])
      for (const number of [0, 1, 102, 359]) expect(decide(program, { arch, number })).toBe('EPERM');
  });

  it('knows no call that is newer, of x32 or negative', () => {
    expect(of(calls.last)).toBe('allowed');
    for (const number of [calls.last + 1, 425, 435, 438, 0x40000000, 0x40000029, 0xffffffff])
      expect(of(number)).toBe('ENOSYS');
  });

  it('opens files to read, not to write, create or truncate', () => {
    const AT_FDCWD = 0xffffff9cn;
    expect(of(calls.openat, AT_FDCWD, 0n, 0o2000000n)).toBe('allowed');
    for (const flags of [1n, 2n, 3n, 0o100n, 0o1000n, 0o2000001n])
      expect(of(calls.openat, AT_FDCWD, 0n, flags)).toBe('EPERM');
  });

  it('starts threads, and no processes or namespaces', () => {
    const THREAD = 0x3d0f00n;
    expect(of(calls.clone, THREAD)).toBe('allowed');
    for (const flags of [17n, 0x4111n, 0x1200011n, THREAD | 0x40000000n, THREAD | 0x20000n, THREAD | 0x10000000n])
      expect(of(calls.clone, flags)).toBe('EPERM');
  });

  it('sends signals to the process itself alone', () => {
    for (const number of [calls.kill, calls.tgkill]) {
      expect(of(number, BigInt(PID))).toBe('allowed');
      for (const pid of [0n, 1n, 0xffffffffn, BigInt(PID - 1), BigInt(2 ** 32 - PID)])
        expect(of(number, pid)).toBe('EPERM');
    }
  });

  it('sees through the bits of an argument that the kernel does not read', () => {
    expect(of(calls.ioctl, 0n, 0x5421n)).toBe('allowed');
    expect(of(calls.ioctl, 0n, 0x5412n)).toBe('EPERM');
    expect(of(calls.ioctl, 0n, HIGH | 0x5412n)).toBe('EPERM');
    expect(of(calls.fcntl, 0n, HIGH | 8n)).toBe('EPERM');
    expect(of(calls.kill, HIGH | 1n)).toBe('EPERM');
    expect(of(calls.openat, 0n, 0n, HIGH | 1n)).toBe('EPERM');
  });
});

it('has no filter for processors whose numbers nobody has checked', () => {
  expect(systemCallFilter('riscv64')).toBeUndefined();
});
