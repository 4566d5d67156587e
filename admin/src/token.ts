import { Command } from 'commander';
import { AuthServiceService, type ServerToken } from 'proto/auth/v1/auth.ts';
import { StartError } from 'platform/core/start-error.ts';
import type { Context } from './context.ts';
import type { Column } from './output.ts';
import { pageOf } from './page.ts';
import { collected, pageSize, seconds, time } from './usage-error.ts';

const COLUMNS: readonly Column<ServerToken>[] = [
  { title: 'Name', value: (row) => row.name },
  { title: 'Id', value: (row) => row.id, narrowed: 'id' },
  { title: 'Hint', value: (row) => row.hint },
  { title: 'Created', value: (row) => row.createdAt },
  { title: 'Last used', value: (row) => row.lastUsedAt ?? 'never' },
  { title: 'State', value: (row) => (row.revokedAt ? 'revoked' : row.expiresAt ? `until ${row.expiresAt}` : 'live') },
];

interface CreateOptions {
  expiresAt?: string;
  scope: string[];
  addressRange: string[];
}

export function tokenCommand(context: Context): Command {
  const auth = () => context.client(AuthServiceService, 'auth');
  const command = new Command('token').description('server tokens; every command needs --as <security administrator>');
  command
    .command('create <name>')
    .description('create a server token and show its value, which cannot be shown again')
    .option('--expires-at <time>', 'when it ends; default: never', time)
    .option('--scope <scope>', 'memory:read, memory:write or agents:run; repeat it; default: all', collected, [])
    .option('--address-range <network>', 'only from here, such as 203.0.113.0/24; repeat it', collected, [])
    .action(async (name: string, { expiresAt, scope: scopes, addressRange: addressRanges }: CreateOptions) => {
      const restrictions = { scopes, addressRanges };
      const request = { name, expiresAt, restrictions };
      const { serverToken, value } = await auth().createServerToken(request, await context.asUser());
      context.printRecord({ ...(serverToken as ServerToken), value });
    });
  command
    .command('list')
    .description('list the server tokens, newest first')
    .option('--page-size <n>', 'tokens per page', pageSize, 100)
    .option('--after <id>', 'tokens after this one', '')
    .option('--unused-for <time>', 'only live tokens that nobody has used for so long', seconds(3_650), 0)
    .action(async ({ pageSize, after, unusedFor }: { pageSize: number; after: string; unusedFor: number }) => {
      const options = await context.asUser();
      const list = async (size: number, afterId: string) =>
        (await auth().listServerTokens({ pageSize: size, afterId, unusedForSeconds: unusedFor }, options)).serverTokens;
      context.printPage(await pageOf(pageSize, after, list, ({ id }) => id), COLUMNS, '--after');
    });
  command
    .command('rotate <name-or-id>')
    .description('give a server token a new value under its name, and show the value')
    .option('--overlap <time>', 'how long the old value remains valid', seconds(30), 0)
    .action(async (idOrName: string, { overlap }: { overlap: number }) => {
      const request = { idOrName, overlapSeconds: overlap };
      const { serverToken, value } = await auth().rotateServerToken(request, await context.asUser());
      context.printRecord({ ...(serverToken as ServerToken), value });
    });
  command
    .command('revoke <name-or-id>')
    .description('revoke a server token; it is rejected from the next request on')
    .option('--cancel-runs', 'also end the runs that it began, within seconds; takes a revoked token, too, by its id')
    .action(async (idOrName: string, { cancelRuns = false }: { cancelRuns?: boolean }) => {
      const { serverToken } = await auth().revokeServerToken({ idOrName, cancelRuns }, await context.asUser());
      context.printRecord(serverToken as ServerToken);
      if (cancelRuns && serverToken?.runsCancelled !== true)
        throw new StartError('the token is revoked, but its runs go on: auth is of a release that cannot end them');
    });
  return command;
}
