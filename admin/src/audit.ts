import { Command } from 'commander';
import { AuthServiceService, type AuditEntry } from 'proto/auth/v1/auth.ts';
import type { Context } from './context.ts';
import type { Column } from './output.ts';
import { pageOf } from './page.ts';
import { pageSize } from './usage-error.ts';

const COLUMNS: readonly Column<AuditEntry>[] = [
  { title: 'Time', value: (row) => row.at },
  { title: 'Action', value: (row) => row.action },
  { title: 'Outcome', value: (row) => row.code ?? row.outcome },
  { title: 'Actor', value: (row) => `${row.actorKind} ${row.actorName}${row.actorVia ? ` via ${row.actorVia}` : ''}` },
  { title: 'Count', value: (row) => row.count },
  { title: 'Target', value: (row) => (row.targetType ? `${row.targetType} ${row.targetId}` : undefined) },
];

export function auditCommand(context: Context): Command {
  const command = new Command('audit').description('the audit trail of an organization');
  command
    .command('list')
    .description('list the entries, newest first')
    .option('--page-size <n>', 'entries per page', pageSize, 50)
    .option('--before <id>', 'entries before this one', '')
    .option('--action <action>', 'only this action, for example server_token.create', '')
    .action(async ({ pageSize, before, action }: { pageSize: number; before: string; action: string }) => {
      const options = await context.onOrganization();
      const list = async (size: number, beforeId: string) =>
        (
          await context
            .client(AuthServiceService, 'auth')
            .listAuditEntries({ pageSize: size, beforeId, action }, options)
        ).entries;
      context.printPage(await pageOf(pageSize, before, list, ({ id }) => id), COLUMNS, '--before');
    });
  return command;
}
