import { Command, Option } from 'commander';
import { AuthServiceService, type AuditChange, type AuditEntry, type AuditPlace } from 'proto/auth/v1/auth.ts';
import { AUDIT_ACTIONS } from './audit-actions.ts';
import { headOf, verifyTrail } from './audit-chain.ts';
import { exportTrail } from './audit-export.ts';
import type { Context } from './context.ts';
import { inList, type Column } from './output.ts';
import { pageOf } from './page.ts';
import { pageSize, time, UsageError, wholeNumber } from './usage-error.ts';

const COLUMNS: readonly Column<AuditEntry>[] = [
  { title: 'Time', value: (row) => row.at },
  { title: 'Action', value: (row) => row.action },
  { title: 'Outcome', value: (row) => row.code ?? row.outcome },
  { title: 'Actor', value: (row) => `${row.actorKind} ${row.actorName}${row.actorVia ? ` via ${row.actorVia}` : ''}` },
  { title: 'Count', value: (row) => row.count },
  { title: 'Target', value: (row) => (row.targetType ? `${row.targetType} ${row.targetId}` : undefined) },
  { title: 'Changes', value: ({ changes }) => changes.map(inWords).join('; ') || undefined },
];

/** "roles: admin → admin, security_admin", or "name: ci" of what was made. */
const inWords = ({ field, before, after }: AuditChange): string =>
  before.length === 0 ? `${field}: ${after.join(', ')}` : `${field}: ${before.join(', ')} → ${inList(after)}`;

interface ListOptions {
  pageSize: number;
  before: string;
  action: string;
  actor?: string;
  resource?: { type: string; id: string };
  outcome?: string;
  since?: string;
  until?: string;
}

/** "memory_type:0192…" -> type and id. @throws UsageError */
function resourceOf(text: string): { type: string; id: string } {
  const [, type, id] = /^([^:]+):(.+)$/s.exec(text) ?? [];
  if (type === undefined || id === undefined)
    throw new UsageError(`${text} is not a resource such as server_token:<id> or agent:<name>`);
  return { type, id };
}

export function auditCommand(context: Context): Command {
  const command = new Command('audit').description('the audit trail of an organization');
  command
    .command('list')
    .description('list the entries, newest first')
    .option('--page-size <n>', 'entries per page', pageSize, 50)
    .option('--before <id>', 'entries before this one', '')
    .addOption(new Option('--action <action>', 'only this action').choices(AUDIT_ACTIONS).default('', 'all'))
    .option('--actor <id-or-name>', 'only what this token, user, operator or service did')
    .option('--resource <type:id>', 'only what was done to this resource, such as agent:<name>', resourceOf)
    .addOption(
      new Option('--outcome <outcome>', 'only entries with this outcome').choices(['success', 'failure', 'denied']),
    )
    .option('--since <time>', 'from this time on', time)
    .option('--until <time>', 'before this time', time)
    .action(async ({ before, pageSize, ...filter }: ListOptions) => {
      const options = await context.onOrganization();
      const list = async (size: number, beforeId: string) =>
        (
          await context
            .client(AuthServiceService, 'auth')
            .listAuditEntries({ ...filter, pageSize: size, beforeId }, options)
        ).entries;
      context.printPage(await pageOf(pageSize, before, list, ({ id }) => id), COLUMNS, '--before');
    });
  command
    .command('verify')
    .description('check that no entry was removed, changed, moved or added; prints the head, to be kept elsewhere')
    .option('--head <sequence:hash>', 'a head that verify printed before: the trail must contain it', headOf)
    .action(({ head }: { head?: AuditPlace }) => verifyTrail(context, head));
  command
    .command('export')
    .description('write all entries as NDJSON, oldest first, to standard output or a file')
    .option('--file <file>', 'write to this file; if it has entries, go on after the last of them')
    .option('--after <sequence>', 'only entries after this one', wholeNumber(0, 1e15 - 1))
    .action((options: { file?: string; after?: number }) => exportTrail(context, options));
  return command;
}
