import { readFileSync } from 'node:fs';
import Sequencer from '@jest/test-sequencer';

/**
 * Runs the files that use the shared stack first, and tells its host (test/support/shared-stack-host.ts) how many they
 * are, so that it stops after the last of them.
 */
export default class SharedStackFirst extends Sequencer {
  sort(tests) {
    const sorted = super.sort(tests);
    const uses = new Map(sorted.map((test) => [test, /\bsharedStack\(\)/.test(readFileSync(test.path, 'utf8'))]));
    const first = sorted.filter((test) => uses.get(test));
    process.env.TEST_SHARED_STACK_FILES = String(first.length);
    return [...first, ...sorted.filter((test) => !uses.get(test))];
  }
}
