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

const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };

/** The seconds of a time such as 90s, 15m, 1h or 7d, at most 30 days. @throws UsageError */
export function overlap(text: string): number {
  const [, count, unit] = /^(\d{1,7})([smhd])$/.exec(text) ?? [];
  const seconds = Number(count) * (SECONDS[unit ?? ''] ?? Number.NaN);
  if (!(seconds <= 30 * 86_400))
    throw new UsageError(`${text} is not a time of at most 30d, such as 90s, 15m, 1h or 7d`);
  return seconds;
}
