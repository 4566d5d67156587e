import { Argument, Command } from 'commander';
import { AuthServiceService, type User } from 'proto/auth/v1/auth.ts';
import { ServiceError } from 'platform/core/errors.ts';
import type { Context } from './context.ts';
import { inList, type Column } from './output.ts';
import { pageOf } from './page.ts';
import { collected, pageSize, UsageError } from './usage-error.ts';

const COLUMNS: readonly Column<User>[] = [
  { title: 'Email', value: (row) => row.email, narrowed: 'last' },
  { title: 'Name', value: (row) => row.name },
  { title: 'Roles', value: (row) => inList(row.roles) },
  { title: 'Groups', value: (row) => inList(row.groups) },
  { title: 'Created', value: (row) => row.createdAt },
];

const ROLES = ['admin', 'security_admin'];
function collectedRole(role: string, earlier: readonly string[]): string[] {
  if (!ROLES.includes(role)) throw new UsageError(`${role} is not a role: ${ROLES.join(' or ')}`);
  return collected(role, earlier);
}

interface CreateOptions {
  name?: string;
  role: string[];
  group: string[];
}

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
    .option('--role <role>', 'admin or security_admin; repeat it for both', collectedRole, [])
    .option('--group <group>', 'a group; repeat it for several', collected, [])
    .action(async (email: string, { name, role: roles, group: groups }: CreateOptions) => {
      const options = await context.onOrganization();
      const request = { email, name: name ?? email.replace(/@[^]*/, ''), roles, groups };
      const created = await auth()
        .createUser(request, options)
        .catch((error: unknown) => {
          throw error instanceof ServiceError && error.reason === 'ALREADY_EXISTS' ? unchanged(error) : error;
        });
      show(created);
      if (created.known) context.note(knownNote(created.user as User, name));
    });
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
    .command('set-roles')
    .description('replace the roles; without roles, all are removed')
    .argument('<email>')
    .addArgument(new Argument('[roles...]', 'the new roles').choices(ROLES))
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

const unchanged = (error: ServiceError): ServiceError =>
  new ServiceError(
    error.reason,
    `${error.message}; nothing was changed. user set-roles and user set-groups change what it has`,
    { facts: error.facts, cause: error },
  );

/** What became of the options for a user of another organization. */
function knownNote({ email, name, roles, groups }: User, given: string | undefined): string {
  const kept = given !== undefined && given !== name ? `keeps the name ${name}, so --name was not used` : `is ${name}`;
  const here = `has here the roles ${inList(roles)} and the groups ${inList(groups)}`;
  return `${email} is a user of another organization, too: it ${kept}, and ${here}.`;
}
