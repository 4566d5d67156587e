import { Command } from 'commander';
import { AuthServiceService, type User } from 'proto/auth/v1/auth.ts';
import type { Context } from './context.ts';
import { inList, type Column } from './output.ts';
import { pageOf } from './page.ts';
import { pageSize } from './usage-error.ts';

const COLUMNS: readonly Column<User>[] = [
  { title: 'Email', value: (row) => row.email, keep: true },
  { title: 'Name', value: (row) => row.name },
  { title: 'Roles', value: (row) => inList(row.roles) },
  { title: 'Groups', value: (row) => inList(row.groups) },
  { title: 'Created', value: (row) => row.createdAt },
];

export function userCommand(context: Context): Command {
  const auth = () => context.client(AuthServiceService, 'auth');
  const show = ({ user }: { user: User | undefined }): void => context.printRecord(user as User);
  const command = new Command('user').description(
    'users of an organization, their roles (admin, security_admin) and groups',
  );
  command
    .command('create <email>')
    .description('create a user, or add an existing user to the organization')
    .option('--name <name>', 'displayed name (default: the part before @)')
    .option('--role <role...>', 'roles', [])
    .option('--group <group...>', 'groups', [])
    .action(async (email: string, { name, role, group }: { name?: string; role: string[]; group: string[] }) =>
      show(
        await auth().createUser(
          { email, name: name ?? (email.split('@')[0] as string), roles: role, groups: group },
          await context.onOrganization(),
        ),
      ),
    );
  command
    .command('list')
    .description('list the users of the organization')
    .option('--page-size <n>', 'users per page', pageSize, 100)
    .option('--after <email>', 'users after this one', '')
    .action(async ({ pageSize, after }: { pageSize: number; after: string }) => {
      const options = await context.onOrganization();
      const list = async (size: number, afterEmail: string) =>
        (await auth().listUsers({ pageSize: size, afterEmail }, options)).users;
      context.printPage(await pageOf(pageSize, after, list, ({ email }) => email), COLUMNS, '--after');
    });
  command
    .command('set-roles <email> [roles...]')
    .description('replace the roles; without roles, all are removed')
    .action(async (email: string, roles: string[]) =>
      show(await auth().setUserRoles({ email, roles }, await context.onOrganization())),
    );
  command
    .command('set-groups <email> [groups...]')
    .description('replace the groups; without groups, all are removed')
    .action(async (email: string, groups: string[]) =>
      show(await auth().setUserGroups({ email, groups }, await context.onOrganization())),
    );
  command
    .command('remove <email>')
    .description('remove the user from the organization')
    .action(async (email: string) =>
      context.printRecord(await auth().removeUser({ email }, await context.onOrganization())),
    );
  return command;
}
