import { Command, Option } from 'commander';
import { AuthServiceService, type Organization } from 'proto/auth/v1/auth.ts';
import { CreditsServiceService } from 'proto/credits/v1/credits.ts';
import { HOUR_MS } from 'platform/core/clock.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { timeOfId } from 'platform/core/ids.ts';
import type { CallOptions } from 'platform/rpc/call.ts';
import type { Context } from './context.ts';
import { TIERS } from './organization.ts';
import { toMicros } from './output.ts';
import { UsageError } from './usage-error.ts';

/** An organization of this age is left alone, so that nothing that its administrators removed comes back. */
const LEFT_ALONE_FROM_MS = HOUR_MS;

interface Options {
  tier: string;
  credits: string;
}

/** What a job of a cluster runs at each deployment. It shows no secret, so none can be in its log. */
export const bootstrapCommand = (context: Context): Command =>
  new Command('bootstrap')
    .description(
      'create the first organization and its administrator, who gets a JWT by "jwt issue". Repeated, it completes what ' +
        'was interrupted within an hour, and later it changes nothing',
    )
    .argument('<organization>', 'its name')
    .argument('<email>', 'of the administrator, who is also a security administrator')
    .addOption(new Option('--tier <tier>', 'licence tier').choices(TIERS).default('starter'))
    .option('--credits <credits>', 'credits that it gets', '0')
    .action(async (name: string, email: string, { tier, credits }: Options) => {
      const amountMicros = toMicros(credits);
      if (amountMicros === undefined) throw new UsageError(`${credits} is not an amount of credits`);
      const organization = await organizationNamed(context, name, tier);
      const isOld = Date.now() - timeOfId(organization.id) > LEFT_ALONE_FROM_MS;
      if (!isOld) await furnish(context, organization.id, email, amountMicros);
      context.printRecord({ organization: organization.name, id: organization.id, changed: !isOld });
    });

async function organizationNamed(context: Context, name: string, tier: string): Promise<Organization> {
  const auth = context.client(AuthServiceService, 'auth');
  await unlessItExists(auth.createOrganization({ name, tier }, context.asOperator()));
  return (await auth.getOrganization({ idOrName: name }, context.asOperator())).organization as Organization;
}

async function furnish(context: Context, id: string, email: string, amountMicros: number): Promise<void> {
  const options = (): CallOptions => context.asOperatorIn(id);
  const roles = ['admin', 'security_admin'];
  const user = { email, name: email.replace(/@[^]*/, ''), roles, groups: [] };
  await unlessItExists(context.client(AuthServiceService, 'auth').createUser(user, options()));
  // with the organization's id as the id of the grant, a repeated grant changes nothing
  const grant = { id, amountMicros, note: 'bootstrap' };
  if (amountMicros > 0) await context.client(CreditsServiceService, 'credits').grant(grant, options());
}

async function unlessItExists(creation: Promise<unknown>): Promise<void> {
  await creation.catch((error: unknown) => {
    if (!(error instanceof ServiceError) || error.reason !== 'ALREADY_EXISTS') throw error;
  });
}
