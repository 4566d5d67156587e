/** The command line is used wrongly; exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Makes the parser of an option that takes a whole number. The parser throws UsageError. */
export const wholeNumber =
  (min: number, max: number) =>
  (text: string): number => {
    const value = Number(text);
    if (!/^\d{1,15}$/.test(text) || value < min || value > max)
      throw new UsageError(`${text} is not a whole number from ${min} to ${max}`);
    return value;
  };
export const pageSize = wholeNumber(1, 1_000);
