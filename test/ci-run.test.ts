import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';

// .ci/run decides what lands. Here it runs with an npm that only answers, so that each of its endings is seen.
const SCRIPT = resolve(import.meta.dirname, '../.ci/run');
const PASSED = 'Tests:       9 passed, 9 total';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ci-run-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

interface Answers {
  embedded?: string;
  engines?: string;
  lint?: string;
}

function runCi({ embedded = `echo '${PASSED}'`, engines = `echo '${PASSED}'`, lint = 'true' }: Answers) {
  const calls = join(folder, 'calls');
  const npm = `#!/usr/bin/env bash
echo "$*" >> '${calls}'
case "$*" in
  'run --silent k8s -- lint') ${lint};;
  'run --silent engines -- up') echo 'export MONGODB_URL=m REDIS_URL=r KAFKA_BROKERS=k';;
  test) ${embedded};;
  'run test:engines') ${engines};;
esac
`;
  writeFileSync(join(folder, 'npm'), npm, { mode: 0o755 });
  writeFileSync(join(folder, 'apt-get'), '#!/bin/sh\n', { mode: 0o755 });
  const path = `${folder}${delimiter}${process.env['PATH'] ?? ''}`;
  const { status, stdout } = spawnSync(SCRIPT, { env: { PATH: path }, encoding: 'utf8' });
  return { status, stdout, calls: readFileSync(calls, 'utf8').trim().split('\n') };
}

test('CI succeeds when both suites and the manifests pass', () => {
  const { status, stdout } = runCi({ lint: 'echo no fault' });
  expect(stdout).toContain('no fault');
  expect(status).toBe(0);
});

test('CI says that it could not check the manifests, and succeeds, on a machine without Go', () => {
  const { status, stdout } = runCi({ lint: 'exit 3' });
  expect(stdout).toContain('NOT checked: deploy/k8s');
  expect(status).toBe(0);
});

test.each<[string, Answers]>([
  ['the embedded suite fails', { embedded: `echo 'Tests: 1 failed, 9 total'; exit 1` }],
  ['the suite on real servers fails', { engines: `echo 'Tests: 1 failed, 9 total'; exit 1` }],
  ['a suite does not say how many tests passed', { embedded: 'true' }],
  ['a test was skipped', { engines: `echo 'Tests: 1 skipped, 8 passed, 9 total'` }],
  ['a manifest has a fault', { lint: 'exit 1' }],
])('CI fails when %s, and stops the servers that it started', (_, answers) => {
  const { status, calls } = runCi(answers);
  expect(status).toBe(1);
  expect(calls.at(-1)).toBe('run --silent engines -- down');
});
