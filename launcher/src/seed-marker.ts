import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A file of the data folder that says that a start has seeded, and has shown the token. */
const markerOf = (dataFolder: string): string => join(dataFolder, 'seeded');

export const isSeeded = (dataFolder: string): boolean => existsSync(markerOf(dataFolder));

export const markSeeded = (dataFolder: string): void =>
  writeFileSync(markerOf(dataFolder), `${new Date().toISOString()}\n`, { flush: true });
