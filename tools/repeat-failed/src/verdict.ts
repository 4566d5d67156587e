import { failedTests, named, totalsOf, type FileResult, type Run } from './results.ts';

/** More failed files than these are no accident: the tree is broken, or the machine is. */
const MOST_REPEATED_FILES = 10;

export interface Verdict {
  passes: boolean;
  /** What the log of CI ends with. */
  lines: string[];
}

/**
 * Whether a suite passes whose failed files are repeated.
 * @param repeat runs one test file alone
 */
export async function verdictOf(suite: string, first: Run, repeat: (file: string) => Promise<Run>): Promise<Verdict> {
  // Jest has them in the order in which they ended
  const files = (first.results?.testResults ?? []).toSorted((one, other) => (one.name < other.name ? -1 : 1));
  const failedFiles = files.filter(({ status }) => status === 'failed');
  const fault = faultOf(first, failedFiles.length);
  if (fault !== undefined) {
    const names = failedFiles.flatMap((file) => named(file, failedTests(file)));
    return { passes: false, lines: [`${suite} FAILED: ${fault}`, ...indented(names), totalsOf(files)] };
  }

  const steady: string[] = [];
  const unsteady: string[] = [];
  const latest = new Map(files.map((file) => [file.name, file]));
  for (const file of failedFiles) {
    const run = await repeat(file.name);
    const again = run.results?.testResults.find(({ name }) => name === file.name);
    if (again) latest.set(file.name, again);
    if (run.exitCode === 0 && again && passesNow(file, again)) unsteady.push(...named(file, failedTests(file)));
    else steady.push(...named(file, again && failedTests(again).length > 0 ? failedTests(again) : failedTests(file)));
  }
  return {
    passes: steady.length === 0,
    lines: [
      ...(steady.length === 0 ? [] : [`${suite} FAILED, also when the file was repeated alone:`, ...indented(steady)]),
      ...(unsteady.length === 0
        ? []
        : [
            `${suite}: UNSTEADY, failed and then passed alone. Who meets one for the second time mends it:`,
            ...indented(unsteady),
          ]),
      totalsOf([...latest.values()]),
    ],
  };
}

const indented = (lines: readonly string[]): string[] => lines.map((line) => `  ${line}`);

/** Why the suite fails whatever a repeat would say. */
function faultOf({ exitCode, results }: Run, failedFiles: number): string | undefined {
  if (!results) return `it ended with exit code ${exitCode} before there were results of tests`;
  if (results.numPendingTests > 0) return `skipped tests: ${results.numPendingTests}`;
  if (results.numPassedTests === 0) return 'no test has passed';
  if (failedFiles > MOST_REPEATED_FILES)
    return `${failedFiles} files failed, and more than ${MOST_REPEATED_FILES} are not repeated`;
  // Jest's own exit code for failed tests is 1
  if (exitCode !== (failedFiles > 0 ? 1 : 0)) return `exit code ${exitCode}, with ${failedFiles} failed files`;
  return undefined;
}

/** Every test that failed has passed, and so have all others of the file. */
function passesNow(before: FileResult, again: FileResult): boolean {
  const passed = new Set(
    again.assertionResults.filter(({ status }) => status === 'passed').map(({ fullName }) => fullName),
  );
  return again.status === 'passed' && passed.size > 0 && failedTests(before).every((name) => passed.has(name));
}
