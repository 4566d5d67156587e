/** Prints a line of progress. It goes to standard error, because the shell evaluates standard output. */
export type PrintProgress = (line: string) => void;
export const printProgress: PrintProgress = (line) => void process.stderr.write(`${line}\n`);

/** "a, b and c". */
export const inList = (words: readonly string[]): string =>
  [words.slice(0, -1).join(', '), words.at(-1)].filter(Boolean).join(' and ');
