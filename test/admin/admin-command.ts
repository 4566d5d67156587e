import { join } from 'node:path';
import { REPOSITORY } from '../support/stack.ts';
import { runToEnd, type ProcessResult } from '../support/run-process.ts';

const MAIN = join(REPOSITORY, 'admin/src/main.ts');

/** The real command line as a process of its own. Words are separated by one space; an array takes them as they are. */
export type CommandLine = (words: string | readonly string[], given?: Record<string, string>) => Promise<ProcessResult>;

export const commandLine =
  (env: Readonly<Record<string, string>>): CommandLine =>
  (words, given = {}) =>
    runToEnd(process.execPath, [MAIN, ...(typeof words === 'string' ? words.split(' ').filter(Boolean) : words)], {
      env: { ...env, COLUMNS: undefined, ORGANIZATION: undefined, ...given },
    });

/** What a command that succeeds prints. */
export async function printed(outcome: Promise<ProcessResult>): Promise<string> {
  const { code, stdout, stderr } = await outcome;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout;
}

/** The JSON of a command that succeeds. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into records of every shape
export const json = async (outcome: Promise<ProcessResult>): Promise<any> => JSON.parse(await printed(outcome));

/** The single sentence of a command that fails. */
export async function sentence(outcome: Promise<ProcessResult>, expectedCode: 1 | 2 = 1): Promise<string> {
  const { code, stdout, stderr } = await outcome;
  expect({ code, stdout, lines: stderr.split('\n').length }).toEqual({ code: expectedCode, stdout: '', lines: 2 });
  return stderr.trimEnd();
}
