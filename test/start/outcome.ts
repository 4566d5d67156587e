import { execFile, spawn, type ChildProcess, type SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import { pause } from '../../dev-servers/src/pause.ts';
import { isGone } from '../../dev-servers/src/process-state.ts';
import { descendantsOf } from '../support/process-tree.ts';
import { commandOf, eventually } from '../support/stack.ts';

/** How a process ended, and what it has printed. */
export interface Outcome {
  code: number | null;
  signal: string | null;
  stdout: string;
  stderr: string;
}

export interface Invocation {
  env?: Record<string, string | undefined>;
  cwd?: string;
}

/** Runs a command to its end; it inherits none of jest's own settings. */
export const outcomeOf = (
  file: string,
  args: readonly string[],
  { env = {}, cwd }: Invocation = {},
): Promise<Outcome> =>
  new Promise((resolve) => {
    const child = execFile(
      file,
      args,
      { env: { ...process.env, INIT_CWD: undefined, NODE_OPTIONS: '', ...env }, cwd, maxBuffer: 1 << 26 },
      (_error, stdout, stderr) => resolve({ code: child.exitCode, signal: child.signalCode, stdout, stderr }),
    );
  });

/** A process that goes on, and what it has printed so far on both streams. */
export interface Begun {
  child: ChildProcess;
  output(): string;
}
export function begin(file: string, args: readonly string[], options: SpawnOptions): Begun {
  const child = spawn(file, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  let printed = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  return { child, output: () => printed };
}

/** [code, signal], also of a process that has ended already. */
export async function endOf(child: ChildProcess): Promise<[number | null, string | null]> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  return [child.exitCode, child.signalCode];
}

/** kill -9, and the process ids of all that it left behind. The process stands still meanwhile, so that it makes no more of them. */
export async function killWithFamily(child: ChildProcess): Promise<number[]> {
  const pid = child.pid as number;
  await pause(pid);
  const family = descendantsOf(pid);
  child.kill('SIGKILL');
  await endOf(child);
  return family;
}

/** Resolves when all of them have ended. */
export async function expectGone(family: readonly number[]): Promise<void> {
  await eventually(() => family.every(isGone));
  expect(family.map(commandOf).filter((command) => command !== '')).toEqual([]);
}
