import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AgentsServiceService } from 'proto/agents/v1/agents.ts';
import { AuthServiceService, type Organization } from 'proto/auth/v1/auth.ts';
import { CreateMemoryTypeRequest, MemoryServiceService } from 'proto/memory/v1/memory.ts';
import { CreditsServiceService } from 'proto/credits/v1/credits.ts';
import type { CallOptions, ServiceClient } from 'platform/rpc/call.ts';
import { HOUR_MS, type Clock } from 'platform/core/clock.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { newId, timeOfId } from 'platform/core/ids.ts';
import { parseJson } from 'platform/core/parse-json.ts';
import { jsonOfFile } from 'platform/json/json-file.ts';
import { membersOf } from 'platform/json/parts.ts';
import type { Operator } from 'platform/rpc/operator.ts';

const EXAMPLES = join(import.meta.dirname, '../../examples/agents');
const ORGANIZATION = 'demo';
const ADMINISTRATOR = 'admin@demo.example';
const TOKEN_NAME = 'first start';
const CREDITS = 1_000;
/** From this age on an organization is not seeded again, so that nothing that its administrators removed comes back. */
const SEEDED_UNTIL_AGE_MS = HOUR_MS;

export interface Seeded {
  organization: string;
  administrator: string;
  credits: number;
  agents: string[];
  /** The server token's value, which is stored nowhere else. Undefined if another start on the same engines made it. */
  token: string | undefined;
}

/**
 * Creates the demo organization, its administrator, credits, example agents and server token at the first start. Every
 * step is idempotent, so the next start completes the seed of a start that was killed; the launcher calls `markSeeded`
 * when it has shown the token. On shared engines a replica's data folder may be new at every start, so the
 * organization's age decides there.
 * @param shared true if other starts use the same engines
 * @param tokenIds ids of the tokens that this start has requested. Pass the same set when you call this again, so that
 * it recognizes a token of its own whose creation had an unknown outcome
 * @returns undefined if an earlier start on the same engines has seeded
 */
export async function seed(
  operator: Operator,
  shared: boolean,
  clock: Clock,
  tokenIds = new Set<string>(),
): Promise<Seeded | undefined> {
  const auth = operator.client(AuthServiceService, 'auth');
  const organization = await organizationNamed(auth, ORGANIZATION, operator);
  if (shared && clock.now() - timeOfId(organization.id) > SEEDED_UNTIL_AGE_MS) return undefined;
  const asOperator = () => operator.as(organization.id);
  await ignoreExisting(
    auth.createUser(
      { email: ADMINISTRATOR, name: 'Administrator', roles: ['admin', 'security_admin'], groups: [] },
      asOperator(),
    ),
  );
  const credits = operator.client(CreditsServiceService, 'credits');
  // with the organization's id as the id of the grant, a repeated grant changes nothing
  await credits.grant({ id: organization.id, amountMicros: CREDITS * 1_000_000, note: 'first start' }, asOperator());
  const agents = await publishExamples(operator, asOperator);
  const { principal } = await auth.assumeUser({ email: ADMINISTRATOR }, asOperator());
  if (!principal) throw new Error('auth returned no principal');
  const memory = operator.client(MemoryServiceService, 'memory');
  await ignoreExisting(memory.createMemoryType(noteType(), operator.asPrincipal(principal)));
  const token = await createToken(auth, () => operator.asPrincipal(principal), shared, tokenIds);
  return { organization: organization.name, administrator: ADMINISTRATOR, credits: CREDITS, agents, token };
}

/** The memory type of the objects that the example agent `notes` keeps. */
function noteType(): CreateMemoryTypeRequest {
  const { json } = jsonOfFile(readFileSync(join(EXAMPLES, '../memory-types/note.json')));
  const named = parseJson(json.toString()) as Omit<CreateMemoryTypeRequest, 'jsonSchema'>;
  const [, jsonSchema] = membersOf(json).find(([name]) => name === 'jsonSchema')!;
  return CreateMemoryTypeRequest.fromPartial({ ...named, jsonSchema: jsonSchema.toString() });
}

async function organizationNamed(
  auth: ServiceClient<AuthServiceService>,
  name: string,
  operator: Operator,
): Promise<Organization> {
  await ignoreExisting(auth.createOrganization({ name, tier: 'enterprise' }, operator.as()));
  const { organization } = await auth.getOrganization({ idOrName: name }, operator.as());
  if (!organization) throw new Error('auth returned no organization');
  return organization;
}

async function publishExamples(operator: Operator, asOperator: () => CallOptions): Promise<string[]> {
  const agents = operator.client(AgentsServiceService, 'agents');
  const names: string[] = [];
  for (const file of readdirSync(EXAMPLES)
    .filter((name) => name.endsWith('.json'))
    .sort()) {
    const { text: definition } = jsonOfFile(readFileSync(join(EXAMPLES, file)));
    const { agent, version } = await agents.applyAgent({ definition }, asOperator());
    if (!agent) throw new Error('agents returned no agent');
    await agents.publishAgent({ name: agent.name, version }, asOperator());
    names.push(agent.name);
  }
  return names;
}

/**
 * Creates the server token. If one exists already, its value is lost: this start or an interrupted one made it. So it
 * is revoked and another one is created. On shared engines a token that this start did not request may belong to
 * another start and is kept.
 * @returns the token's value; undefined if another start's token was kept
 */
async function createToken(
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
      if (!isAlreadyExists(error)) throw error;
      const existingId = String(error.facts.id);
      if (shared && !tokenIds.has(existingId)) return undefined;
      await auth.revokeServerToken({ idOrName: existingId }, asUser());
    }
  }
}

const isAlreadyExists = (error: unknown): error is ServiceError =>
  error instanceof ServiceError && error.reason === 'ALREADY_EXISTS';

async function ignoreExisting(creation: Promise<unknown>): Promise<void> {
  await creation.catch((error: unknown) => {
    if (!isAlreadyExists(error)) throw error;
  });
}
