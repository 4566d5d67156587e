/** Progress, a line each, on standard error: standard output is for `eval`. */
export type Say = (line: string) => void;
export const say: Say = (line) => void process.stderr.write(`${line}\n`);

export const inList = (words: readonly string[]): string =>
  [words.slice(0, -1).join(', '), words.at(-1)].filter(Boolean).join(' and ');
