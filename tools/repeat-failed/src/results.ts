import { existsSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';

/** How a run of Jest ended. */
export interface Run {
  exitCode: number;
  /** Absent when Jest has written none: it was not reached, or has not come to its end. */
  results?: Results;
}

/** What Jest writes for `--json --outputFile`, as far as it is of interest here. */
export interface Results {
  numPassedTests: number;
  numPendingTests: number;
  testResults: readonly FileResult[];
}

export interface FileResult {
  /** Path of the file. */
  name: string;
  /** `failed` also when the file could not be run, and so has no tests; `focused`: some were skipped. */
  status: 'passed' | 'failed' | 'focused' | 'skipped';
  assertionResults: readonly { fullName: string; status: string }[];
}

export const resultsIn = (file: string): Results | undefined =>
  existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Results) : undefined;

/** The names of its failed tests; empty when the file itself could not be run. */
export const failedTests = ({ assertionResults }: FileResult): string[] =>
  assertionResults.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName);

/** "path: full name of a test" for each of the names, or a line about the file itself. */
export const named = ({ name: file }: FileResult, names: readonly string[]): string[] =>
  (names.length > 0 ? names : ['the file itself, which could not be run']).map(
    (name) => `${relative(process.cwd(), file)}: ${name.replaceAll(/\s+/g, ' ')}`,
  );

/** The line that ends Jest's own summary. */
export function totalsOf(files: readonly FileResult[]): string {
  const tests = files.flatMap(({ assertionResults }) => assertionResults);
  const counted = (status: string, word = status): string[] => {
    const count = tests.filter((test) => test.status === status).length;
    return count === 0 ? [] : [`${count} ${word}`];
  };
  const counts = [...counted('failed'), ...counted('pending', 'skipped'), ...counted('todo'), ...counted('passed')];
  return `Tests:       ${[...counts, `${tests.length} total`].join(', ')}`;
}
