import { Command } from 'commander';
import { RELEASE } from 'platform/core/release.ts';
import type { Context } from './context.ts';

export const versionCommand = (context: Context): Command =>
  new Command('version')
    .description('print the release of this command line; "doctor" shows that of every process')
    .action(() => context.printText(RELEASE, { release: RELEASE }));
