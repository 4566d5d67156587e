import { join } from 'node:path';
import { REPOSITORY } from '../support/stack.ts';
import { runToEnd, type ProcessResult } from '../support/run-process.ts';

const MAIN = join(REPOSITORY, 'admin/src/main.ts');

/** Runs the real command line as a process. Words are separated by one space; words in an array may contain spaces. */
export type CommandLine = (
  words: string | readonly string[],
  given?: Record<string, string>,
  input?: string | Buffer,
) => Promise<ProcessResult>;

export const commandLine =
  (env: Readonly<Record<string, string>>): CommandLine =>
  (words, given = {}, input) =>
    runToEnd(process.execPath, [MAIN, ...(typeof words === 'string' ? words.split(' ').filter(Boolean) : words)], {
      env: { ...env, COLUMNS: undefined, ORGANIZATION: undefined, ...given },
      input,
    });

/** The standard output of a command that must succeed. */
export async function printed(outcome: Promise<ProcessResult>): Promise<string> {
  const { code, stdout, stderr } = await outcome;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout;
}

/** The JSON that a command prints, which must succeed. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests read records of every structure
export const json = async (outcome: Promise<ProcessResult>): Promise<any> => JSON.parse(await printed(outcome));

/** The single line of standard error of a command that must fail. */
export async function sentence(outcome: Promise<ProcessResult>, expectedCode: 1 | 2 = 1): Promise<string> {
  const { code, stdout, stderr } = await outcome;
  expect({ code, stdout, lines: stderr.split('\n').length }).toEqual({ code: expectedCode, stdout: '', lines: 2 });
  return stderr.trimEnd();
}
