/** The command line asks for something that cannot be meant; exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Value of an option that takes a whole number. @throws UsageError */
export function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new UsageError(`${text} is not a whole number`);
  return Number(text);
}
