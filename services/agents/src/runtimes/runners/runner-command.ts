import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Command } from './confinement.ts';

/** Heap beside that of an agent: 24 MB for Node and JSONata, and what a runner keeps of compiled expressions. */
const BASE_MB = 44;

export const RUNNER_PROGRAM = join(import.meta.dirname, 'runner-child.ts');
/** Takes the sources that `giveSources` writes from the standard input. */
const FIRST_MODULE = join(import.meta.dirname, 'load-sources.js');
const platform = import.meta.resolve('platform/core/parse-json.ts');
/** All files that a runner may read: those by which Node finds packages, and packages. It may write no file. */
const READABLE = [
  FIRST_MODULE,
  join(import.meta.dirname, 'watch-parent.js'),
  join(import.meta.dirname, '../../../package.json'),
  folderOf('jsonata'),
  folderOf('re2js'),
  folderOf('@eslint-community/regexpp'),
  folderOf('quickjs-emscripten-core'),
  folderOf('@jitl/quickjs-ffi-types'),
  folderOf('@jitl/quickjs-wasmfile-release-sync'),
  fileURLToPath(new URL('../../package.json', platform)),
  createRequire(import.meta.url)
    .resolve.paths('platform')!
    .map((folder) => join(folder, 'platform'))
    .find(existsSync)!,
];
/** A program of a test may read its own folder, too. */
const readableBy = (program: string): string[] =>
  program === RUNNER_PROGRAM ? READABLE : [...READABLE, join(dirname(program), '*')];

/**
 * The command that starts a runner and its arguments: a process without permissions, whose heap V8 limits.
 * @param memoryMb heap for an agent
 * @param program what the process runs
 * @param watches whether it has a thread that watches the service, because the system does not end it with the service
 */
export const runnerCommand = (memoryMb: number, program: string, watches: boolean): Command => [
  process.execPath,
  ...flagsOf(memoryMb, program),
  `--import=${pathToFileURL(FIRST_MODULE).href}`,
  ...(watches ? ['--allow-worker', program, String(process.pid)] : [program]),
];

const flagsOf = (memoryMb: number, program: string): string[] => [
  `--max-old-space-size=${memoryMb + BASE_MB}`,
  '--max-semi-space-size=4',
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
