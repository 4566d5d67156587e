import { membersOf } from '../gateway/src/json/parts.ts';
import { strictJson } from '../gateway/src/json/strict-json.ts';
import { costlyBodies } from '../gateway/test/json/costly-bodies.ts';

const ROUNDS = 21;

/** Prints the CPU milliseconds that the gateway's reader takes for bodies of 1 MiB, and those of JSON.parse alone. */
export function measureJson(): void {
  process.stdout.write('| a body of | gateway ms | JSON.parse ms |\n|---|--:|--:|\n');
  for (const [name, text] of Object.entries(costlyBodies())) {
    const bytes = Buffer.from(text);
    const own = medianCpuMs(() => Array.from(membersOf(strictJson(bytes))));
    const native = medianCpuMs(() => JSON.parse(text) as unknown);
    process.stdout.write(`| ${name} | ${own} | ${native} |\n`);
  }
}

/** For example "4.2". */
function medianCpuMs(run: () => unknown): string {
  const times = Array.from({ length: ROUNDS }, () => {
    const before = process.cpuUsage();
    run();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  });
  return times.sort((a, b) => a - b)[Math.floor(ROUNDS / 2)]!.toFixed(1);
}
