import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';

// .ci/run decides what lands. Here it runs with an npm that only answers, so that each of its endings is seen; what
// repeats failed tests (tools/repeat-failed) is the real one.
const ROOT = resolve(import.meta.dirname, '..');
const REPEAT = join(ROOT, 'tools/repeat-failed/src/main.ts');

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ci-run-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

/** A suite of one file that ends with these statuses of its tests, as Jest writes them. */
function ended(...statuses: ('passed' | 'failed' | 'pending')[]): string {
  const countOf = (status: string): number => statuses.filter((found) => found === status).length;
  const results = {
    numPassedTests: countOf('passed'),
    numPendingTests: countOf('pending'),
    testResults: [
      {
        name: join(ROOT, 'a.test.ts'),
        status: countOf('failed') > 0 ? 'failed' : countOf('pending') > 0 ? 'focused' : 'passed',
        assertionResults: statuses.map((status, n) => ({ fullName: `test ${n}`, status })),
      },
    ],
  };
  return `echo '${JSON.stringify(results)}' > "$file"; exit ${countOf('failed') > 0 ? 1 : 0}`;
}

interface Answers {
  embedded?: string;
  engines?: string;
  /** Of any file. */
  repeated?: string;
  lint?: string;
}

function runCi({ embedded = ended('passed', 'passed'), engines = ended('passed'), repeated, lint }: Answers) {
  const calls = join(folder, 'calls');
  const npm = `#!/usr/bin/env bash
echo "$*" >> '${calls}'
file=; for word in "$@"; do [[ $word != --outputFile=* ]] || file=\${word#--outputFile=}; done
case "$*" in
  'run --silent k8s -- lint') ${lint ?? 'true'};;
  'run --silent engines -- up') echo 'export MONGODB_URL=m REDIS_URL=r KAFKA_BROKERS=k';;
  'run --silent repeat-failed -- '*) shift 4; exec '${process.execPath}' '${REPEAT}' "$@";;
  *--runTestsByPath*) ${repeated ?? 'false'};;
  'test -- '*) ${embedded};;
  'run test:engines -- '*) ${engines};;
esac
`;
  writeFileSync(join(folder, 'npm'), npm, { mode: 0o755 });
  writeFileSync(join(folder, 'apt-get'), '#!/bin/sh\n', { mode: 0o755 });
  const path = `${folder}${delimiter}${process.env['PATH'] ?? ''}`;
  const { status, stdout } = spawnSync(join(ROOT, '.ci/run'), { env: { PATH: path }, encoding: 'utf8' });
  return { status, lines: stdout.trimEnd().split('\n'), calls: readFileSync(calls, 'utf8').trim().split('\n') };
}

test('CI succeeds when both suites and the manifests pass, and says in the end how many tests did', () => {
  const { status, lines } = runCi({ lint: 'echo no fault' });
  expect(lines.slice(-3)).toEqual(['no fault', 'Tests:       2 passed, 2 total', 'Tests:       1 passed, 1 total']);
  expect(status).toBe(0);
});

test('CI says that it could not check the manifests, and succeeds, on a machine without Go', () => {
  const { status, lines } = runCi({ lint: 'exit 3' });
  expect(lines.join('\n')).toContain('NOT checked: deploy/k8s');
  expect(status).toBe(0);
});

test('CI succeeds when what failed passes alone, and names it in the end, for both suites', () => {
  const unsteady = ended('passed', 'failed');
  const { status, lines, calls } = runCi({
    embedded: unsteady,
    engines: unsteady,
    repeated: ended('passed', 'passed'),
  });
  const summaryOf = (script: string): string[] => [
    `npm run ${script}: UNSTEADY, failed and then passed alone. Who meets one for the second time mends it:`,
    '  a.test.ts: test 1',
    'Tests:       2 passed, 2 total',
  ];
  expect(lines.slice(-6)).toEqual([...summaryOf('jest'), ...summaryOf('test:engines')]);
  expect(status).toBe(0);
  const repeats = calls.filter((call) => call.includes('--runTestsByPath'));
  const file = join(ROOT, 'a.test.ts');
  expect(repeats).toEqual([
    expect.stringMatching(`^run --silent jest -- --runInBand .* ${file}$`),
    expect.stringMatching(`^run --silent test:engines -- --runInBand .* ${file}$`),
  ]);
});

test('nothing is repeated while the manifests are checked beside', () => {
  const over = join(folder, 'over');
  const { status } = runCi({
    // ends only after the suite has, and would not before a repeat that does not wait for it
    lint: `until [ -e '${over}.suite' ]; do :; done; for ((n = 0; n < 500000; n++)); do :; done; touch '${over}'`,
    embedded: `touch '${over}.suite'; ${ended('passed', 'failed')}`,
    repeated: `[ -e '${over}' ] || exit 1; ${ended('passed', 'passed')}`,
  });
  expect(status).toBe(0);
});

test.each<[string, Answers]>([
  ['the embedded suite fails twice', { embedded: ended('passed', 'failed'), repeated: ended('passed', 'failed') }],
  ['the suite on real servers fails twice', { engines: ended('passed', 'failed'), repeated: ended('failed') }],
  ['the checks fail', { embedded: 'exit 1', repeated: ended('passed') }],
  ['a suite does not say how many tests passed', { embedded: 'true', repeated: ended('passed') }],
  ['a test was skipped', { engines: ended('pending', 'passed') }],
  ['a manifest has a fault', { lint: 'exit 1' }],
])('CI fails when %s, and stops the servers that it started', (_, answers) => {
  const { status, calls } = runCi(answers);
  expect(status).toBe(1);
  expect(calls.at(-1)).toBe('run --silent engines -- down');
});
