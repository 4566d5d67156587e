import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from './confinement.ts';

/** Heap beside that of an agent: 24 MB for Node and JSONata, and what a runner keeps of compiled expressions. */
const BASE_MB = 44;

/** The files of another workspace that runners import, its package, and the link through which Node finds it. */
const OF_PLATFORM = [
  fileURLToPath(import.meta.resolve('platform/core/parse-json.ts')),
  fileURLToPath(import.meta.resolve('platform/json-schema/pattern-cost.ts')),
  fileURLToPath(new URL('../../package.json', import.meta.resolve('platform/core/parse-json.ts'))),
  createRequire(import.meta.url)
    .resolve.paths('platform')!
    .map((folder) => join(folder, 'platform'))
    .find(existsSync)!,
];
export const RUNNER_PROGRAM = join(import.meta.dirname, 'runner-child.ts');
/** All files that a runner may read. It may write no file. */
const readableBy = (program: string): string[] => [
  join(dirname(program), '*'),
  join(import.meta.dirname, '../expression/*'),
  join(import.meta.dirname, '../script/*'),
  join(import.meta.dirname, '../json-text.ts'),
  join(import.meta.dirname, '../../../package.json'),
  folderOf('jsonata'),
  folderOf('re2js'),
  folderOf('quickjs-emscripten-core'),
  folderOf('@jitl/quickjs-ffi-types'),
  folderOf('@jitl/quickjs-wasmfile-release-sync'),
  ...OF_PLATFORM,
];

/**
 * The command that starts a runner and its arguments: a process without permissions, whose heap V8 limits.
 * @param memoryMb heap for an agent
 * @param program what the process runs
 * @param watches whether it has a thread that watches the service, because the system does not end it with the service
 */
export const runnerCommand = (memoryMb: number, program: string, watches: boolean): Command => [
  process.execPath,
  ...flagsOf(memoryMb, program),
  ...(watches ? ['--allow-worker', program, String(process.pid)] : [program]),
];

const flagsOf = (memoryMb: number, program: string): string[] => [
  `--max-old-space-size=${memoryMb + BASE_MB}`,
  '--max-semi-space-size=8',
  // One thread for compiling and collecting garbage, so that a run takes little more than one core.
  '--v8-pool-size=1',
  '--disallow-code-generation-from-strings',
  '--disable-proto=throw',
  '--permission',
  ...readableBy(program).map((path) => `--allow-fs-read=${path}`),
];

function folderOf(packageName: string): string {
  const file = createRequire(import.meta.url).resolve(packageName);
  const end = join('node_modules', packageName, '/');
  return join(file.slice(0, file.lastIndexOf(end) + end.length), '*');
}
