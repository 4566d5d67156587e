import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { openCpuClock } from '../../../src/runtimes/runners/cpu-time.ts';

/** The files of this process that are open and count a thread's time. */
const openFiles = (): string[] =>
  readdirSync('/proc/self/fd')
    .map((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`);
      } catch {
        return '';
      }
    })
    .filter((file) => file.endsWith('/schedstat'));

describe('the clock of processor time', () => {
  it('counts every thread, and opens one file for each, however often it is read', async () => {
    const clock = openCpuClock(process.pid);
    const first = clock.nowMs();
    for (let read = 0; read < 100; read++) clock.nowMs();
    expect(clock.nowMs()).toBeGreaterThan(first);
    expect(openFiles().length).toBeLessThanOrEqual(readdirSync('/proc/self/task').length);

    const before = clock.nowMs();
    const worker = new Worker(
      'const end = Date.now() + 60; while (Date.now() < end); require("worker_threads").parentPort.on("message", () => {}).postMessage(0)',
      { eval: true },
    );
    await new Promise((resolve) => worker.once('message', resolve));
    const during = clock.nowMs();
    expect(during).toBeGreaterThan(before);
    await worker.terminate();
    clock.nowMs();
    expect(openFiles().length).toBeLessThanOrEqual(readdirSync('/proc/self/task').length);
    clock.close();
    expect(openFiles()).toEqual([]);
  });

  it('is 0 for a process that does not exist', () => {
    const noProcess = Number(readFileSync('/proc/sys/kernel/pid_max', 'utf8')) + 1;
    expect(openCpuClock(noProcess).nowMs()).toBe(0);
  });
});
