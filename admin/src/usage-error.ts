/** The command line is used wrongly; exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** The parser of an option, and what `--help` says about the values that it takes. It throws UsageError. */
export interface Parser<T> {
  (text: string): T;
  form: string;
}
const parser = <T>(form: string, parse: (text: string) => T): Parser<T> => Object.assign(parse, { form });

/** For an option that is repeated: adds each value to those before. */
export const collected = (value: string, earlier: readonly string[]): string[] => [...earlier, value];

/** Makes the parser of an option that takes a whole number. */
export const wholeNumber = (min: number, max: number): Parser<number> =>
  parser(`${min} to ${max}`, (text) => {
    const value = Number(text);
    if (!/^\d{1,15}$/.test(text) || value < min || value > max)
      throw new UsageError(`${text} is not a whole number from ${min} to ${max}`);
    return value;
  });
export const pageSize = wholeNumber(1, 1_000);

const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };

/** Makes the parser of an option that takes a time such as 90s, 15m, 1h or 7d, in seconds. */
export const seconds = (maxDays: number): Parser<number> =>
  parser(`such as 90s, 15m, 1h or 7d; at most ${maxDays}d`, (text) => {
    const [, count, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
    const value = Number(count) * (SECONDS[unit ?? ''] ?? Number.NaN);
    if (!(value <= maxDays * 86_400))
      throw new UsageError(`${text} is not a time of at most ${maxDays}d, such as 90s, 15m, 1h or 7d`);
    return value;
  });

/** The parser of an option that takes a time: ISO 8601 with a zone, or a date alone, which begins at midnight UTC. */
export const time = parser('a date, or an ISO 8601 time with a zone', (text) => {
  const [date, rest] = [text.slice(0, 10), text.slice(10)];
  const midnight = new Date(`${date}T00:00:00Z`);
  const isDate = /^\d{4}-\d\d-\d\d$/.test(date) && midnight.getTime() >= 0 && midnight.toISOString().startsWith(date);
  const whole = rest === '' ? `${date}T00:00:00Z` : text;
  if (!isDate || !/T.*(Z|[+-]\d\d:\d\d)$/.test(whole) || Number.isNaN(Date.parse(whole)))
    throw new UsageError(`${text} is not a time such as 2030-01-31 or 2030-01-31T12:00:00Z`);
  return whole;
});
