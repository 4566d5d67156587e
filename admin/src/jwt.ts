import { Command } from 'commander';
import { AuthServiceService, type Grant, type SigningKey } from 'proto/auth/v1/auth.ts';
import type { Context } from './context.ts';
import type { Column } from './output.ts';
import { pageOf } from './page.ts';
import { pageSize } from './usage-error.ts';

const COLUMNS: readonly Column<Grant>[] = [
  { title: 'Id', value: (row) => row.id, narrowed: 'id' },
  { title: 'User', value: (row) => row.email },
  { title: 'Created', value: (row) => row.createdAt },
  { title: 'By', value: (row) => row.createdBy },
  { title: 'State', value: (row) => (row.revokedAt ? 'revoked' : `until ${row.expiresAt}`) },
];

export function jwtCommand(context: Context): Command {
  const auth = () => context.client(AuthServiceService, 'auth');
  const command = new Command('jwt').description('JWTs of users, and the keys that sign them');
  command
    .command('issue <email>')
    .description('issue a JWT to a user of the organization; it is good for one hour, or until its grant is revoked')
    .action(async (email: string) => {
      const { jwt, grant } = await auth().issueJwt({ email }, await context.onOrganization());
      context.printRecord({ ...(grant as Grant), jwt });
    });
  command
    .command('list')
    .description('list the grants of JWTs, newest first')
    .option('--page-size <n>', 'grants per page', pageSize, 100)
    .option('--after <id>', 'grants after this one', '')
    .action(async ({ pageSize, after }: { pageSize: number; after: string }) => {
      const options = await context.onOrganization();
      const list = async (size: number, afterId: string) =>
        (await auth().listGrants({ pageSize: size, afterId }, options)).grants;
      context.printPage(await pageOf(pageSize, after, list, ({ id }) => id), COLUMNS, '--after');
    });
  command
    .command('revoke <grant-id>')
    .description('revoke a grant; JWTs under it are rejected from the next request on')
    .action(async (id: string) =>
      context.printRecord((await auth().revokeGrant({ id }, await context.onOrganization())).grant as Grant),
    );
  command
    .command('rotate-key')
    .description('let another key sign the JWTs of all organizations, ten minutes after it is published')
    .option('--withdraw', 'at once, and reject JWTs of all earlier keys from the next request on', false)
    .action(async ({ withdraw }: { withdraw: boolean }) =>
      context.printRecord((await auth().rotateSigningKey({ withdraw }, context.asOperator())).signingKey as SigningKey),
    );
  return command;
}
