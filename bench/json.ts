import { execFileSync } from 'node:child_process';
import { membersOf } from '../gateway/src/json/parts.ts';
import { strictJson } from '../gateway/src/json/strict-json.ts';
import { cpuMsOf } from '../test/support/cpu-time.ts';
import { costlyBodies } from '../gateway/test/json/costly-bodies.ts';

const ROUNDS = 21;

/**
 * Prints the CPU milliseconds that the gateway's reader takes for bodies of 1 MiB, for the first body of a process
 * ("cold") and for later ones, and those of JSON.parse alone.
 */
export function measureJson(): void {
  process.stdout.write('| a body of | gateway ms, cold | gateway ms | JSON.parse ms |\n|---|--:|--:|--:|\n');
  for (const [name, text] of Object.entries(costlyBodies())) {
    const cold = execFileSync(process.execPath, [import.meta.filename, name], { encoding: 'utf8' });
    const own = medianCpuMs(() => readAll(Buffer.from(text)));
    const native = medianCpuMs(() => JSON.parse(text) as unknown);
    process.stdout.write(`| ${name} | ${cold} | ${own} | ${native} |\n`);
  }
}

const readAll = (bytes: Buffer): unknown => Array.from(membersOf(strictJson(bytes)));

/** For example "4.2". */
function medianCpuMs(run: () => unknown): string {
  const times = Array.from({ length: ROUNDS }, () => cpuMsOf(run));
  return times.sort((a, b) => a - b)[Math.floor(ROUNDS / 2)]!.toFixed(1);
}

if (process.argv[1] === import.meta.filename) {
  const bytes = Buffer.from(costlyBodies()[process.argv[2] as string]!);
  process.stdout.write(cpuMsOf(() => readAll(bytes)).toFixed(1));
}
