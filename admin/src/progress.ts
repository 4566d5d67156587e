/** Takes a sentence about what is being done. */
export type Progress = (sentence: string) => void;

const EVERY_MS = 3_000;

/** Prints what is being done every few seconds, for a person who waits at a terminal. */
export function progressNotes(note: (sentence: string) => void): Progress {
  let printedAt = performance.now();
  return (sentence) => {
    if (!process.stderr.isTTY || performance.now() - printedAt < EVERY_MS) return;
    printedAt = performance.now();
    note(sentence);
  };
}
