import { spawnSync } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '../../..');
const JEST = join(ROOT, 'node_modules/jest/bin/jest.js');
const MANY = 11;

let folder: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'repeat-failed-test-')));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** A body that fails unless this is not the first time. */
const once = (name: string): string =>
  `const { existsSync, writeFileSync } = require('fs');
   const before = existsSync('${name}');
   writeFileSync('${name}', '');
   if (!before) throw new Error('only now');`;
const PASSES = `test('passes', () => {});`;
const UNSTEADY = `describe('a suite', () => { ${PASSES} test('is unsteady', () => { ${once('unsteady')} }); });`;
const FAILS = `test('fails', () => { throw new Error('always'); });`;

interface Around {
  /** A command before the tests. */
  checks?: string;
  reporters?: readonly string[];
}

/** Runs the suite of these test files as .ci/run does, with the real Jest. */
function suite(files: Record<string, string>, { checks = 'true', reporters = ['default'] }: Around = {}) {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, `${name}.test.js`), text);
  const jest = `${JSON.stringify(process.execPath)} ${JSON.stringify(JEST)} --config jest.json`;
  const scripts = { jest, suite: `${checks} && ${jest}` };
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'suite', scripts }));
  // with workers, which end whatever a file leaves open
  const config = { transform: {}, maxWorkers: 2, cacheDirectory: join(folder, 'cache'), reporters };
  writeFileSync(join(folder, 'jest.json'), JSON.stringify(config));
  const results = join(folder, 'results.json');
  const run = (command: string, args: readonly string[], mark: Record<string, string> = {}) =>
    spawnSync(command, args, { cwd: folder, encoding: 'utf8', env: { ...process.env, ...mark } });
  const first = run('npm', ['run', 'suite', '--', '--json', `--outputFile=${results}`], { CI_SUITE: folder });
  const program = join(ROOT, 'tools/repeat-failed/src/main.ts');
  const { status, stdout, stderr } = run(process.execPath, [program, 'jest', results, String(first.status), folder]);
  return { first: first.status, status, lines: stdout.trimEnd().split('\n'), repeated: stderr.includes('Tests:') };
}

it('a suite that passes is not repeated, and says how many tests passed', () => {
  expect(suite({ a: PASSES, b: PASSES })).toEqual({
    first: 0,
    status: 0,
    lines: ['Tests:       2 passed, 2 total'],
    repeated: false,
  });
});

it('what fails and then passes alone is unsteady: each is named, and the suite passes', () => {
  const unloaded = `${once('unloaded')} ${PASSES}`;
  expect(suite({ a: PASSES, b: UNSTEADY, c: unloaded })).toEqual({
    first: 1,
    status: 0,
    lines: [
      'npm run jest: UNSTEADY, failed and then passed alone. Who meets one for the second time mends it:',
      '  b.test.js: a suite is unsteady',
      '  c.test.js: the file itself, which could not be run',
      'Tests:       4 passed, 4 total',
    ],
    repeated: true,
  });
});

it('what does not pass alone fails the suite, beside what is unsteady', () => {
  const again = (name: string): string => `require('fs').existsSync('${name}')`;
  const files = {
    fails: FAILS,
    lacks: `require('./not-a-file');`,
    other: `test('first', () => { ${once('other')} });
      test('second', () => { if (${again('once')}) throw new Error(); ${once('once')} });`,
    renamed: `test(${again('new')} ? 'new' : 'old', () => { ${once('new')} });`,
    skips: `(${again('skips')} ? xtest : test)('skips', () => { ${once('skips')} }); ${PASSES}`,
    unsteady: UNSTEADY,
  };
  const { status, lines } = suite(files);
  expect(lines).toEqual([
    'npm run jest FAILED, also when the file was repeated alone:',
    '  fails.test.js: fails',
    '  lacks.test.js: the file itself, which could not be run',
    '  other.test.js: second',
    '  renamed.test.js: old',
    '  skips.test.js: skips',
    'npm run jest: UNSTEADY, failed and then passed alone. Who meets one for the second time mends it:',
    '  unsteady.test.js: a suite is unsteady',
    'Tests:       2 failed, 1 skipped, 5 passed, 8 total',
  ]);
  expect(status).toBe(1);
});

it('what a failed file has left running is gone when it is repeated, and its unfinished work does not hold CI up', () => {
  const left = `
    const { spawn } = require('child_process');
    const { existsSync, readFileSync, writeFileSync } = require('fs');
    test('starts a server', () => {
      const commandOf = (pid) => { try { return readFileSync('/proc/' + pid + '/cmdline', 'utf8'); } catch { return ''; } };
      const before = existsSync('pid') && commandOf(readFileSync('pid', 'utf8')) === '';
      const server = spawn('sleep', ['600'], { detached: true, stdio: 'ignore' });
      writeFileSync('pid', String(server.pid));
      setInterval(() => {}, 1_000);
      if (!before) throw new Error('only now');
    });`;
  const { status, lines } = suite({ a: PASSES, b: left });
  expect(lines.slice(1, -1)).toEqual(['  b.test.js: starts a server']);
  expect(status).toBe(0);
});

describe('is not repeated, and fails:', () => {
  it.each<[string, Parameters<typeof suite>, string]>([
    ['checks before the tests', [{ a: PASSES }, { checks: 'false' }], 'before there were results of tests'],
    ['a suite without tests', [{}], 'before there were results of tests'],
    ['no test that has passed', [{ a: FAILS }], 'no test has passed'],
    ['a skipped test', [{ a: `${PASSES} xtest('skipped', () => {});`, b: UNSTEADY }], 'skipped tests: 1'],
    [
      'more failed files than an accident explains',
      [Object.fromEntries(Array.from({ length: MANY }, (_, n) => [`n${n}`, `${PASSES} ${FAILS}`]))],
      `${MANY} files failed, and more than 10 are not repeated`,
    ],
    ['what is no test', [{ a: PASSES }, { reporters: ['./reporter.js'] }], 'exit code 1, with 0 failed files'],
  ])('%s', (_, args, why) => {
    const reporter = `module.exports = class { getLastError() { return new Error('no report'); } };`;
    writeFileSync(join(folder, 'reporter.js'), reporter);
    const { status, lines, repeated } = suite(...args);
    expect(lines[0]).toMatch(/^npm run jest FAILED: /);
    expect(lines[0]).toContain(why);
    expect({ status, repeated }).toEqual({ status: 1, repeated: false });
  });
});
