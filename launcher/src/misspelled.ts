import { PROCESSES, settingOf } from 'platform/core/processes.ts';
import type { Env } from 'platform/core/config.ts';

/** What is read from the same environment by the admin command line. */
const OF_OTHERS = [...Object.keys(PROCESSES).map((name) => settingOf(name, 'ADDRESS')), 'ORGANIZATION'];
/** In a name of at least this length two letters may be wrong, in a shorter one only one. */
const LONG = 10;

/**
 * Sentences about variables that are no setting, but nearly. Other programs read the environment, too, so everything
 * else in it is passed over, and a value is never shown.
 * @param settings the names that the processes have asked for
 */
export function misspelledSettings(settings: ReadonlySet<string>, env: Env): string[] {
  const known = new Set([...settings, ...OF_OTHERS]);
  return Object.keys(env)
    .filter((name) => !known.has(name) && env[name] !== '')
    .flatMap((name) => {
      const meant = [...settings].find((each) => distance(name, each) <= (each.length >= LONG ? 2 : 1));
      return meant === undefined ? [] : [`${name} is no setting, so it changes nothing; did you mean ${meant}?`];
    });
}

/** How many letters must be added, removed or replaced; 9 when the lengths alone say that they are many. */
function distance(one: string, other: string): number {
  if (Math.abs(one.length - other.length) > 2) return 9;
  let row = Array.from({ length: other.length + 1 }, (_, column) => column);
  for (const [index, letter] of [...one].entries()) {
    const next = [index + 1];
    for (let column = 1; column <= other.length; column++)
      next[column] = Math.min(
        row[column]! + 1,
        next[column - 1]! + 1,
        row[column - 1]! + (letter === other[column - 1] ? 0 : 1),
      );
    row = next;
  }
  return row.at(-1)!;
}
