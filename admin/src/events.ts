import { Command } from 'commander';
import type { Context } from './context.ts';
import { runJobs } from './job.ts';

export function eventsCommand(context: Context): Command {
  const command = new Command('events').description('what consumers of events gave up on: dead letters');
  command
    .command('replay')
    .description('hand every dead letter to its consumer again, oldest first, until one fails')
    .action(() => runJobs(context, 'dead-letters'));
  return command;
}
