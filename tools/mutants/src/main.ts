import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { copyTree } from './copy.ts';
import { allMutants, planted, type Mutant } from './mutants.ts';
import { runTests, type Results } from './run-tests.ts';

const USAGE = `npm run mutants: plants one mistake after the other in a copy of the tree, and says which of them tests notice
npm run mutants -- --only <name> [--only <name>]: these alone
`;

/** The tests of the mutant that are among these results with this outcome. */
const withOutcome = (results: Results, outcome: 'passed' | 'failed', { tests }: Mutant): boolean[] =>
  Object.entries(tests).map(
    ([file, name]) => results.get(file)?.[outcome].some((fullName) => fullName.includes(name)) ?? false,
  );

/** @returns why no test notices it; undefined if each of its tests does */
function unnoticed(root: string, without: Results, mutant: Mutant): string | undefined {
  const { file, tests } = mutant;
  if (!withOutcome(without, 'passed', mutant).every(Boolean)) return 'a test of it does not pass without it';
  if (withOutcome(without, 'failed', mutant).some(Boolean)) return 'a test of it fails without it';
  const before = readFileSync(join(root, file), 'utf8');
  try {
    writeFileSync(join(root, file), planted(root, mutant));
    const results = runTests(root, Object.keys(tests), Object.values(tests));
    if (results.size < Object.keys(tests).length) return 'its tests did not end, or could not be run';
    return withOutcome(results, 'failed', mutant).every(Boolean) ? undefined : 'a test of it passes';
  } catch (error) {
    return (error as Error).message;
  } finally {
    writeFileSync(join(root, file), before);
  }
}

function run(mutants: readonly Mutant[]): boolean {
  using copy = copyTree(join(import.meta.dirname, '../../..'));
  const tests = mutants.flatMap((mutant) => Object.entries(mutant.tests));
  process.stdout.write('Runs the tests without any mistake ...\n');
  const without = runTests(
    copy.path,
    [...new Set(tests.map(([file]) => file))],
    tests.map(([, name]) => name),
  );
  let noticed = 0;
  for (const mutant of mutants) {
    const reason = unnoticed(copy.path, without, mutant);
    if (reason === undefined) noticed++;
    process.stdout.write(`${reason === undefined ? 'noticed    ' : 'NOT noticed'}  ${mutant.name}`);
    process.stdout.write(reason === undefined ? '\n' : `: ${reason}\n    ${mutant.why}\n`);
  }
  process.stdout.write(`${noticed} of ${mutants.length} mistakes are noticed\n`);
  return noticed === mutants.length;
}

try {
  const { only } = parseArgs({ options: { only: { type: 'string', multiple: true } } }).values;
  const all = allMutants();
  const unknown = only?.find((name) => all.every((mutant) => mutant.name !== name));
  if (unknown !== undefined) throw new Error(`There is no mutant ${unknown}`);
  process.exitCode = run(only ? all.filter(({ name }) => only.includes(name)) : all) ? 0 : 1;
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n${USAGE}`);
  process.exitCode = 2;
}
