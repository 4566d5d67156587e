import { Command } from 'commander';
import { createKeys, peersFileOf } from 'platform/rpc/keys.ts';
import { PROCESSES } from 'platform/core/processes.ts';
import type { Context } from './context.ts';

export function keysCommand(context: Context): Command {
  const command = new Command('keys').description('the keys by which processes and operators authenticate each other');
  command
    .command('create')
    .description(
      'create the missing keys of all processes and of this operator in DATA_DIR/keys (npm start also does this)',
    )
    .action(() => {
      const folder = context.keyFolder();
      const added = createKeys(folder, [...Object.keys(PROCESSES), context.operatorName()]);
      context.printRecord({ folder, peers: peersFileOf(folder), operator: context.operatorName() });
      if (added) context.note('Running services do not know the new keys until they are restarted.');
    });
  return command;
}
