import { readFileSync } from 'node:fs';
import TestRunner from 'jest-runner';

/**
 * Runs the files that mostly wait beside all others: those that start servers of their own, most of which are down, and
 * some more, so that both lanes take about as long. Each lane runs one file at a time, in a process whose TEST_LANE is
 * its number.
 */
export default class LanesRunner extends TestRunner {
  async runTests(tests, watcher, options) {
    const lanes = Object.values(Object.groupBy(tests, ({ path }) => Number(mostlyWaits(path))));
    if (lanes.length === 1) return super.runTests(tests, watcher, options);
    const runs = lanes.map((lane, number) => {
      process.env.TEST_LANE = String(number); // the process of the lane is forked in this call
      return super.runTests(lane, watcher, { ...options, serial: false });
    });
    await Promise.all(runs);
  }
}

const mostlyWaits = (path) =>
  /\/(events\/kafka|kills\/(?!type-change))/.test(path) || readFileSync(path, 'utf8').includes('/private-server.ts');
