import type { DatabaseSync } from 'node:sqlite';
import { RELEASE } from '../../core/release.ts';

/** "1.20.3" as 1,020,003: SQLite keeps one number in a file for its owner. */
const PART = 1_000;
const numberOf = (release: string): number => release.split('.').reduce((sum, part) => sum * PART + Number(part), 0);
const named = (number: number): string =>
  [Math.floor(number / PART ** 2), Math.floor(number / PART) % PART, number % PART].join('.');

/**
 * Notes in the file that this release writes it; the latest one remains noted. Release 0.1.0 noted nothing. A release
 * works with the one after it (ADR 51), so it also opens what that one wrote, but nothing later.
 * @throws Error when a later release than the next one has written the file
 */
export function noteRelease(db: DatabaseSync, release = RELEASE): void {
  const [major, minor] = release.split('.') as [string, string];
  const found = db.prepare('PRAGMA user_version').get()!.user_version as number;
  if (found >= numberOf(`${major}.${Number(minor) + 2}.0`))
    throw new Error(
      `release ${named(found)} has written it, and this is release ${release}, ` +
        `which opens files of releases up to ${major}.${Number(minor) + 1}`,
    );
  if (found < numberOf(release)) db.exec(`PRAGMA user_version = ${numberOf(release)}`);
}
