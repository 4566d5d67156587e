import { Command } from 'commander';
import { encodingFault, hasByteOrderMark } from 'platform/json/json-file.ts';
import { AgentsServiceService, type Secret } from 'proto/agents/v1/agents.ts';
import type { Context } from './context.ts';
import type { Column } from './output.ts';
import { seconds, UsageError } from './usage-error.ts';

const COLUMNS: readonly Column<Secret>[] = [
  { title: 'Name', value: (row) => row.name, narrowed: 'last' },
  { title: 'Created', value: (row) => row.createdAt },
  { title: 'Updated', value: (row) => row.updatedAt },
  { title: 'Old value until', value: (row) => row.previousUntil },
];

export function secretCommand(context: Context): Command {
  const agents = () => context.client(AgentsServiceService, 'agents');
  const command = new Command('secret').description('secrets of agents: set, list and delete them');
  command
    .command('set <name>')
    .description('store the secret that standard input gives, without the line end behind it; it is never shown again')
    .option('--overlap <time>', 'how long the old value is used, too', seconds(30), 0)
    .action(async (name: string, { overlap }: { overlap: number }) => {
      const bytes = await context.readInput('Type the secret, then press Enter and Ctrl-D.');
      const value = requireText(bytes).replace(/\r?\n$/, '');
      if (value === '') throw new UsageError('Standard input gives no secret');
      const { secret } = await agents().setSecret(
        { name, value, overlapSeconds: overlap },
        await context.onOrganization(),
      );
      context.printRecord(secret as Secret);
    });
  command
    .command('list')
    .description('list the secrets by name, without their values')
    .action(async () =>
      context.print((await agents().listSecrets({}, await context.onOrganization())).secrets, COLUMNS),
    );
  command
    .command('delete <name>')
    .description('delete a secret; runs of agents that use it fail')
    .action(async (name: string) => {
      await agents().deleteSecret({ name }, await context.onOrganization());
      context.printRecord({ name, deleted: true });
    });
  return command;
}

/** A secret is used as it is, so nothing of it is replaced or left out. @throws UsageError */
function requireText(bytes: Buffer): string {
  const fault = hasByteOrderMark(bytes) ? 'begins with a byte order mark' : encodingFault(bytes);
  if (fault !== undefined) throw new UsageError(`Standard input ${fault}`);
  if (bytes.includes(0)) throw new UsageError('Standard input has a NUL character, which no secret may have');
  return bytes.toString();
}
