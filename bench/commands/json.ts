import { execFileSync } from 'node:child_process';
import { openJsonReader, type JsonReader } from '../../gateway/src/json/json-reader.ts';
import { membersOf } from 'platform/json/parts.ts';
import { costlyBodies } from '../../platform/test/json/costly-bodies.ts';

const ROUNDS = 21;
/** CPU milliseconds of the thread that handles requests, and of all threads, those of the compiler included. */
interface Cost {
  mainMs: number;
  allMs: number;
}

/**
 * Prints the CPU milliseconds that bodies of 1 MiB take of the gateway's main thread and of all its threads, for the
 * first body of a process ("cold") and for later ones, and those of JSON.parse.
 */
export async function measureJson(): Promise<void> {
  process.stdout.write(
    '| a body of | main thread ms, cold | main thread ms | all threads ms, cold | all threads ms | JSON.parse ms |\n' +
      '|---|--:|--:|--:|--:|--:|\n',
  );
  const reader = openJsonReader();
  for (const [name, text] of Object.entries(costlyBodies())) {
    const cold = JSON.parse(execFileSync(process.execPath, [import.meta.filename, name], { encoding: 'utf8' })) as Cost;
    const warm = await medianCost(() => readAll(reader, text));
    const native = await medianCost(() => JSON.parse(text) as unknown);
    const figures = [cold.mainMs, warm.mainMs, cold.allMs, warm.allMs, native.mainMs].map((ms) => ms.toFixed(1));
    process.stdout.write(`| ${name} | ${figures.join(' | ')} |\n`);
  }
  await reader.close();
}

const readAll = async (reader: JsonReader, text: string): Promise<unknown> =>
  Array.from(membersOf(await reader.read('A', Buffer.from(new TextEncoder().encode(text).buffer), [])));

async function costOf(run: () => unknown): Promise<Cost> {
  const [main, all] = [process.threadCpuUsage(), process.cpuUsage()];
  await run();
  return { mainMs: millisecondsOf(process.threadCpuUsage(main)), allMs: millisecondsOf(process.cpuUsage(all)) };
}
const millisecondsOf = ({ user, system }: NodeJS.CpuUsage): number => (user + system) / 1000;

async function medianCost(run: () => unknown): Promise<Cost> {
  const costs: Cost[] = [];
  for (let round = 0; round < ROUNDS; round++) costs.push(await costOf(run));
  const median = (of: keyof Cost): number => costs.map((cost) => cost[of]).sort((a, b) => a - b)[ROUNDS >> 1]!;
  return { mainMs: median('mainMs'), allMs: median('allMs') };
}

if (process.argv[1] === import.meta.filename) {
  const reader = openJsonReader();
  const text = costlyBodies()[process.argv[2] as string]!;
  const cost = await costOf(() => readAll(reader, text));
  process.stdout.write(JSON.stringify(cost));
  await reader.close();
}
