import { execFile, spawn, type ChildProcess, type SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import { pause } from '../../dev-servers/src/pause.ts';
import { isGone } from '../../dev-servers/src/process-state.ts';
import { commandOf, descendantsOf } from './process-tree.ts';
import { closedInTheEnd, eventually } from 'platform/service/test-end.ts';

/** How a process ended, and what it printed. */
export interface ProcessResult {
  code: number | null;
  signal: string | null;
  stdout: string;
  stderr: string;
}

export interface Invocation {
  env?: Record<string, string | undefined>;
  cwd?: string;
  /** What it reads from standard input; nothing unless given. */
  input?: string | Buffer;
}

/** Runs a command until it exits, without jest's NODE_OPTIONS. */
export const runToEnd = (
  file: string,
  args: readonly string[],
  { env = {}, cwd, input = '' }: Invocation = {},
): Promise<ProcessResult> =>
  new Promise((resolve) => {
    const child = execFile(
      file,
      args,
      { env: { ...process.env, INIT_CWD: undefined, NODE_OPTIONS: '', ...env }, cwd, maxBuffer: 1 << 26 },
      (_error, stdout, stderr) => resolve({ code: child.exitCode, signal: child.signalCode, stdout, stderr }),
    );
    child.stdin!.on('error', () => undefined).end(input);
  });

/** A running process, and what it has printed so far on both streams. It is killed in the end. */
export interface SpawnedProcess {
  child: ChildProcess;
  output(): string;
}
export function spawnProcess(file: string, args: readonly string[], options: SpawnOptions): SpawnedProcess {
  const child = spawn(file, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  closedInTheEnd(() => child.kill('SIGKILL'));
  let printed = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  return { child, output: () => printed };
}

/** Resolves to [code, signal] when the process has exited, also when it exited before the call. */
export async function exitOf(child: ChildProcess): Promise<[number | null, string | null]> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  return [child.exitCode, child.signalCode];
}

/** kill -9; resolves to the ids of the descendants. The process is paused before, so that it starts no more of them. */
export async function killAndListDescendants(child: ChildProcess): Promise<number[]> {
  const pid = child.pid as number;
  await pause(pid);
  const descendants = descendantsOf(pid);
  child.kill('SIGKILL');
  await exitOf(child);
  return descendants;
}

/** Resolves when all of these processes have ended. */
export async function expectAllEnded(pids: readonly number[]): Promise<void> {
  await eventually(() => pids.every(isGone));
  expect(pids.map(commandOf).filter((command) => command !== '')).toEqual([]);
}
