import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { endLeftovers, MARK } from './leftovers.ts';
import { resultsIn, type Run } from './results.ts';
import { verdictOf } from './verdict.ts';

const USAGE = `npm run repeat-failed -- <script> <results> <exit code> <mark>: repeats each file that has failed, alone
  <script>     the npm script that runs the suite: jest, test:engines
  <results>    what Jest has written (--json --outputFile); no such file if it has not come to its end
  <exit code>  of the suite
  <mark>       value of ${MARK} in the environment of the suite; what has it and still runs is killed
`;

const [script, resultsFile, exitCode, mark] = process.argv.slice(2);
if (!script || !resultsFile || !exitCode || !mark) {
  process.stderr.write(USAGE);
  process.exit(2);
}
await endLeftovers(mark);
const { passes, lines } = await verdictOf(
  `npm run ${script}`,
  { exitCode: Number(exitCode), results: resultsIn(resultsFile) },
  runAlone,
);
process.stdout.write(`${lines.join('\n')}\n`);
process.exitCode = passes ? 0 : 1;

/** In one process, with nothing that another file has left running. Its output goes to stderr. */
async function runAlone(file: string): Promise<Run> {
  const folder = mkdtempSync(join(tmpdir(), 'repeat-failed-'));
  const results = join(folder, 'results.json');
  try {
    const jest = ['--runInBand', '--forceExit', '--json', `--outputFile=${results}`, '--runTestsByPath', file];
    const { status } = spawnSync('npm', ['run', '--silent', script!, '--', ...jest], {
      env: { ...process.env, [MARK]: mark },
      stdio: ['ignore', 2, 2],
    });
    return { exitCode: status ?? 1, results: resultsIn(results) };
  } finally {
    rmSync(folder, { recursive: true });
    await endLeftovers(mark!);
  }
}
