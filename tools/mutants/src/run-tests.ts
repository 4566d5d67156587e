import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';

/** For each file that could be run, the names of its tests. */
export type Results = ReadonlyMap<string, { passed: string[]; failed: string[] }>;

interface Report {
  testResults: { name: string; assertionResults: { fullName: string; status: string }[] }[];
}

/** A mistake may keep a test from ending, or all of them. */
const [TEST_TIMEOUT_MS, TIMEOUT_MS] = [60_000, 300_000];

/** Runs the tests whose names contain one of these texts. */
export function runTests(root: string, files: readonly string[], names: readonly string[]): Results {
  const output = join(root, 'results.json');
  rmSync(output, { force: true });
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: { jest: string } };
  // without npm and a shell between them, what does not end is ended
  const [, ...jest] = scripts.jest.split(' ') as [node: string, ...string[]];
  const pattern = names.map((name) => name.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('|');
  const options = [
    '--silent',
    '--forceExit',
    '--testTimeout',
    String(TEST_TIMEOUT_MS),
    '--json',
    '--outputFile',
    output,
  ];
  spawnSync(process.execPath, [...jest, '--runTestsByPath', ...files, ...options, '--testNamePattern', pattern], {
    cwd: root,
    stdio: 'ignore',
    timeout: TIMEOUT_MS,
  });
  if (!existsSync(output)) return new Map();
  const { testResults } = JSON.parse(readFileSync(output, 'utf8')) as Report;
  return new Map(
    testResults.flatMap(({ name, assertionResults }) => {
      if (assertionResults.length === 0) return [];
      const ofStatus = (status: string): string[] =>
        assertionResults.filter((result) => result.status === status).map(({ fullName }) => fullName);
      return [[relative(root, name), { passed: ofStatus('passed'), failed: ofStatus('failed') }] as const];
    }),
  );
}
