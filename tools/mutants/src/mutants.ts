import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

/** A mistake in our sources that tests must notice. */
export interface Mutant {
  name: string;
  /** What a user would lose by it. */
  why: string;
  file: string;
  /** This text is in the file exactly once. */
  find: string;
  replace: string;
  /** The tests that must fail: a part of the name, by file. */
  tests: Readonly<Record<string, string>>;
}

const PATCHES = join(import.meta.dirname, '../patches');

export const allMutants = (): Mutant[] =>
  readdirSync(PATCHES).flatMap((file) => parse(readFileSync(join(PATCHES, file), 'utf8')) as Mutant[]);

/** @returns the file with the mistake. @throws Error when it cannot be planted, which says why */
export function planted(root: string, { file, find, replace }: Mutant): string {
  const path = join(root, file);
  if (!existsSync(path)) throw new Error(`there is no ${file}`);
  const pieces = readFileSync(path, 'utf8').split(find);
  if (pieces.length !== 2) throw new Error(`its text is in ${file} ${pieces.length - 1} times`);
  if (find === replace) throw new Error('it changes nothing');
  return pieces.join(replace);
}

/** What is wrong with a mutant that needs no run of tests to be seen. */
export function faultsOf(root: string, mutant: Mutant): string[] {
  const tests = Object.keys(mutant.tests);
  const faults = tests.filter((file) => !existsSync(join(root, file))).map((file) => `there is no ${file}`);
  if (tests.length === 0) faults.push('it names no test');
  try {
    planted(root, mutant);
  } catch (error) {
    faults.push((error as Error).message);
  }
  return faults;
}
