import { Command } from 'commander';
import type { Context } from './context.ts';
import { runJobs } from './job.ts';

export function eventsCommand(context: Context): Command {
  const command = new Command('events').description('dead letters: events that a consumer failed to process');
  command
    .command('replay')
    .description('process the dead letters again, oldest first; those that are rejected again stay dead letters')
    .action(() => runJobs(context, 'dead-letters'));
  return command;
}
