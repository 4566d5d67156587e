import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { eventually } from 'platform/service/test-end.ts';

/** Process ids of the runners that a process started. */
export const runnersOf = (parent: number, program = 'runner-child.ts'): number[] =>
  readdirSync(`/proc/${parent}/task`)
    .flatMap((thread) => textOf(`/proc/${parent}/task/${thread}/children`).split(' ').filter(Boolean).map(Number))
    .filter((pid) => isRunning(pid) && textOf(`/proc/${pid}/cmdline`).includes(program));

/** False for a process that has ended, also when its parent has not collected its exit status yet. */
export const isRunning = (pid: number): boolean => /^State:\s+[^ZX]/m.test(textOf(`/proc/${pid}/status`));

/** Waits until a process that got SIGSTOP has stopped. */
export const untilStopped = (pid: number): Promise<void> =>
  until(() => /^State:\s+T/m.test(textOf(`/proc/${pid}/status`)));

/** Empty when the file no longer exists. */
function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/** Processor time that a process has used, in hundredths of a second. */
export const cpuTicks = (pid: number): number =>
  Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')[11]);

export const environmentOf = (pid: number): string[] =>
  readFileSync(`/proc/${pid}/environ`, 'utf8')
    .split('\0')
    .filter(Boolean)
    .map((line) => line.split('=')[0]!);
export const folderOf = (pid: number): string => readlinkSync(`/proc/${pid}/cwd`);

export async function until(holds: () => boolean): Promise<void> {
  await eventually(holds);
}
