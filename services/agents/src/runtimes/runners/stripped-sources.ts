import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Log } from 'platform/core/log.ts';

const MAX_BYTES = 16 << 20;
/** Less than a runner may take to start. */
const TIMEOUT_MS = 20_000;
/**
 * All that a runner imports, except packages. Of what is missing here, it cannot read the files of agents, and strips
 * those of platform itself.
 */
const FOLDERS = [
  import.meta.dirname,
  join(import.meta.dirname, '../expression'),
  join(import.meta.dirname, '../script'),
  dirname(fileURLToPath(import.meta.resolve('platform/patterns/in-re2.ts'))),
];
const FILES = [
  join(import.meta.dirname, '../invalid-output.ts'),
  ...['core/parse-json.ts', 'core/json-pointer.ts', 'json/pointer.ts'].map((file) =>
    fileURLToPath(import.meta.resolve(`platform/${file}`)),
  ),
];

const found = new Map<string, Promise<string>>();

/**
 * Gives a runner its sources as JavaScript, by URL, as JSON text; one that gets none ends. A process that strips types
 * itself takes 12 MB and 0.1 s of processor time for that, so one process does it for all runners, and ends.
 * @param input of the runner
 * @param program what the runner runs
 */
export function giveSources(input: Writable, program: string, log: Log): void {
  input.on('error', (error) => log.debug({ error }, 'a runner ended before it had its sources'));
  strippedSources(program).then(
    (sources) => input.end(sources),
    (error: unknown) => {
      log.error({ error }, 'the sources of a runner could not be read');
      input.end();
    },
  );
}

function strippedSources(program: string): Promise<string> {
  let sources = found.get(program);
  if (!sources) {
    sources = stripSources(program);
    found.set(program, sources);
    // The next runner tries again.
    sources.catch(() => found.delete(program));
  }
  return sources;
}

async function stripSources(program: string): Promise<string> {
  const folders = new Set([dirname(program), ...FOLDERS]);
  const inFolders = [...folders].flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)));
  const paths = [...inFolders, ...FILES].filter((path) => path.endsWith('.ts'));
  const strip = join(import.meta.dirname, 'strip-sources.ts');
  const { stdout } = await promisify(execFile)(process.execPath, [strip, ...paths], {
    env: {},
    maxBuffer: MAX_BYTES,
    timeout: TIMEOUT_MS,
  });
  return stdout;
}
