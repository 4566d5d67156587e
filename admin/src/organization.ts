import { Argument, Command, Option } from 'commander';
import { AuthServiceService, type Organization, type Tier } from 'proto/auth/v1/auth.ts';
import type { Context } from './context.ts';
import type { Column } from './output.ts';
import { allOf } from './page.ts';
import { UsageError } from './usage-error.ts';

const PAGE_SIZE = 100;
export const TIERS = ['starter', 'professional', 'enterprise'];
const COLUMNS: readonly Column<Organization>[] = [
  { title: 'Name', value: (row) => row.name },
  { title: 'Id', value: (row) => row.id, narrowed: 'id' },
  { title: 'Tier', value: (row) => row.tier },
  { title: 'State', value: (row) => row.state },
  { title: 'Created', value: (row) => row.createdAt },
];

const TIER_COLUMNS: readonly Column<Tier>[] = [
  { title: 'Tier', value: ({ name }) => name },
  { title: 'Includes', value: ({ capabilities }) => capabilities.join(', ') },
  ...['memory_types', 'memory_objects', 'memory_bytes', 'execution_bytes', 'server_tokens', 'rate_factor'].map(
    (limit): Column<Tier> => ({
      title: `${limit[0]?.toUpperCase()}${limit.slice(1).replaceAll('_', ' ')}`,
      value: ({ limits }) => limits[limit] ?? (limit === 'rate_factor' ? 1 : 'no limit'),
    }),
  ),
];

export function organizationCommand(context: Context): Command {
  const auth = () => context.client(AuthServiceService, 'auth');
  const idOf = async (idOrName: string): Promise<string> => {
    const { organization } = await auth().getOrganization({ idOrName }, context.asOperator());
    return (organization as Organization).id;
  };
  const show = ({ organization }: { organization: Organization | undefined }): void =>
    context.printRecord(organization as Organization);
  const command = new Command('organization').description('organizations and their licence tiers');
  command
    .command('create <name>')
    .description('create an organization')
    .addOption(new Option('--tier <tier>', 'licence tier').choices(TIERS).default('starter'))
    .action(async (name: string, { tier }: { tier: string }) =>
      show(await auth().createOrganization({ name, tier }, context.asOperator())),
    );
  command
    .command('list')
    .description('list all organizations, by name')
    .action(async () => {
      const list = async (size: number, afterName: string) =>
        (await auth().listOrganizations({ pageSize: size, afterName }, context.asOperator())).organizations;
      context.print(await allOf(PAGE_SIZE, '', list, ({ name }) => name), COLUMNS);
    });
  command
    .command('deactivate <name-or-id>')
    .description("reject the organization's tokens, from the next request on")
    .action(async (idOrName: string) =>
      show(await auth().deactivateOrganization({ id: await idOf(idOrName) }, context.asOperator())),
    );
  command
    .command('activate <name-or-id>')
    .description("accept the organization's tokens again")
    .action(async (idOrName: string) =>
      show(await auth().activateOrganization({ id: await idOf(idOrName) }, context.asOperator())),
    );
  command
    .command('tier')
    .description('set the licence tier, or list the tiers')
    .argument('[name-or-id]', 'the organization')
    .addArgument(new Argument('[tier]', 'its new tier').choices(TIERS))
    .option('--list', 'show what each tier holds', false)
    .action(async (idOrName: string | undefined, tier: string | undefined, { list }: { list: boolean }) => {
      if (list && idOrName !== undefined) throw new UsageError('--list shows all tiers and takes no organization');
      if (list) return context.print((await auth().listTiers({}, context.asOperator())).tiers, TIER_COLUMNS);
      if (idOrName === undefined || tier === undefined)
        throw new UsageError('Name an organization and its new tier, or use --list');
      show(await auth().setOrganizationTier({ id: await idOf(idOrName), tier }, context.asOperator()));
    });
  return command;
}
