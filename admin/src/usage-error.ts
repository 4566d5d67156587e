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

/** Makes the parser of an option that takes a time such as 90s, 15m, 1h or 7d, in seconds. It throws UsageError. */
export const seconds =
  (maxDays: number) =>
  (text: string): number => {
    const [, count, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
    const value = Number(count) * (SECONDS[unit ?? ''] ?? Number.NaN);
    if (!(value <= maxDays * 86_400))
      throw new UsageError(`${text} is not a time of at most ${maxDays}d, such as 90s, 15m, 1h or 7d`);
    return value;
  };

/**
 * The parser of an option that takes a time: ISO 8601 with a zone, or a date alone, which begins at midnight UTC.
 * @throws UsageError
 */
export function time(text: string): string {
  const whole = /^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text;
  if (!/^\d{4}-\d\d-\d\dT.*(Z|[+-]\d\d:\d\d)$/.test(whole) || Number.isNaN(Date.parse(whole)))
    throw new UsageError(`${text} is not a time such as 2030-01-31 or 2030-01-31T12:00:00Z`);
  return whole;
}
