import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AgentsServiceService } from 'proto/agents/v1/agents.ts';
import { AuthServiceService, type Organization } from 'proto/auth/v1/auth.ts';
import { CreditsServiceService } from 'proto/credits/v1/credits.ts';
import type { CallOptions, ServiceClient } from 'platform/rpc/call.ts';
import type { Clock } from 'platform/core/clock.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { newId, timeOfId } from 'platform/core/ids.ts';
import type { Operator } from 'platform/rpc/operator.ts';

const EXAMPLES = join(import.meta.dirname, '../../examples/agents');
const ORGANIZATION = 'demo';
const ADMINISTRATOR = 'admin@demo.example';
const TOKEN_NAME = 'first start';
const CREDITS = 1_000;
/** An organization of this age is its administrators' own: nothing that they took away comes back. */
const OWN_AFTER_MS = 3_600_000;

export interface Seeded {
  organization: string;
  administrator: string;
  credits: number;
  agents: string[];
  /** The server token: in this value and nowhere else. Undefined: another start on the same engines made it. */
  token: string | undefined;
}

/**
 * What the first start puts into an empty service. Every step may be repeated, so a start that was killed half-way
 * ends what it began; `markSeeded` comes last. On shared engines a replica's folder may be new at every start and tells nothing:
 * there the organization's age does.
 * @param shared true on engines that other starts use, too
 * @param tokenIds of the tokens that this start has asked for: given again to a repeat, it knows its own
 * @returns undefined when an earlier start did it
 */
export async function seed(
  operator: Operator,
  dataFolder: string,
  shared: boolean,
  clock: Clock,
  tokenIds = new Set<string>(),
): Promise<Seeded | undefined> {
  if (existsSync(markerOf(dataFolder))) return undefined;
  const auth = operator.client(AuthServiceService, 'auth');
  const organization = await organizationNamed(auth, ORGANIZATION, operator);
  if (shared && clock.now() - timeOfId(organization.id) > OWN_AFTER_MS) return undefined;
  const asOperator = () => operator.as(organization.id);
  await unlessThere(
    auth.createUser(
      { email: ADMINISTRATOR, name: 'Administrator', roles: ['admin', 'security_admin'], groups: [] },
      asOperator(),
    ),
  );
  const credits = operator.client(CreditsServiceService, 'credits');
  // the organization's own id makes the grant repeatable
  await credits.grant({ id: organization.id, amountMicros: CREDITS * 1_000_000, note: 'first start' }, asOperator());
  const agents = await publishExamples(operator, asOperator);
  const { principal } = await auth.assumeUser({ email: ADMINISTRATOR }, asOperator());
  if (!principal) throw new Error('auth made no principal');
  const token = await tokenNamed(auth, () => operator.asPrincipal(principal), shared, tokenIds);
  return { organization: organization.name, administrator: ADMINISTRATOR, credits: CREDITS, agents, token };
}

const markerOf = (dataFolder: string): string => join(dataFolder, 'seeded');
export const markSeeded = (dataFolder: string): void =>
  writeFileSync(markerOf(dataFolder), `${new Date().toISOString()}\n`, { flush: true });

async function organizationNamed(
  auth: ServiceClient<AuthServiceService>,
  name: string,
  operator: Operator,
): Promise<Organization> {
  await unlessThere(auth.createOrganization({ name, tier: 'enterprise' }, operator.as()));
  const { organization } = await auth.getOrganization({ idOrName: name }, operator.as());
  if (!organization) throw new Error('auth answered without an organization');
  return organization;
}

async function publishExamples(operator: Operator, asOperator: () => CallOptions): Promise<string[]> {
  const agents = operator.client(AgentsServiceService, 'agents');
  const names: string[] = [];
  for (const file of readdirSync(EXAMPLES)
    .filter((name) => name.endsWith('.json'))
    .sort()) {
    const { agent, version } = await agents.applyAgent(
      { definition: readFileSync(join(EXAMPLES, file), 'utf8') },
      asOperator(),
    );
    if (!agent) throw new Error('agents answered without an agent');
    await agents.publishAgent({ name: agent.name, version }, asOperator());
    names.push(agent.name);
  }
  return names;
}

/** A token of which nobody heard the value, this start's own or an interrupted one's, is revoked and made anew, unless it may be another start's. */
async function tokenNamed(
  auth: ServiceClient<AuthServiceService>,
  asUser: () => CallOptions,
  shared: boolean,
  tokenIds: Set<string>,
): Promise<string | undefined> {
  for (;;) {
    const id = newId();
    tokenIds.add(id);
    try {
      return (await auth.createServerToken({ id, name: TOKEN_NAME, expiresAt: undefined }, asUser())).value;
    } catch (error) {
      if (!isThere(error)) throw error;
      const holder = String(error.facts.id);
      if (shared && !tokenIds.has(holder)) return undefined;
      await auth.revokeServerToken({ idOrName: holder }, asUser());
    }
  }
}

const isThere = (error: unknown): error is ServiceError =>
  error instanceof ServiceError && error.reason === 'ALREADY_EXISTS';

async function unlessThere(creation: Promise<unknown>): Promise<void> {
  await creation.catch((error: unknown) => {
    if (!isThere(error)) throw error;
  });
}
