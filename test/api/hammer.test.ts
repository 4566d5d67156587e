import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { startHammer, type Caller, type Outcome } from '../support/hammer.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { RunningStack } from '../support/stack.ts';
import { asAdministrator } from '../support/tenant-resources.ts';

const CONNECTIONS = 64;
const ORGANIZATIONS = 2;
const ROUNDS = Number(process.env.TEST_HAMMER_ROUNDS ?? 1);
const REQUESTS_AFTER_A_CHANGE = 192;

let stack: RunningStack;
beforeAll(async () => {
  stack = await sharedStack();
});

/** What auth has been told about an organization, and who calls: a server token, and a user with a JWT. */
async function makeSubject(index: number) {
  const tenant = await stack.tenant();
  const auth = stack.operator.client(AuthServiceService, 'auth');
  const asOperator = stack.operator.as(tenant.organizationId);
  const asAdmin = await asAdministrator(stack, tenant);
  const email = `user-${tenant.name}@example.com`;
  await auth.createUser({ email, name: 'User', roles: ['admin'], groups: [] }, asOperator);
  const { jwt } = await auth.issueJwt({ email }, asOperator);
  const truth = { tier: 'enterprise', active: true, isAdmin: true };
  const caller = (name: string, bearer: string): Caller => ({
    name: `${name} ${index}`,
    bearer,
    expected: 'ok',
    changes: 0,
  });
  const token = caller('token', tenant.token);
  const user = caller('user', jwt);
  const former = caller('former token', 'none');
  former.expected = 'unauthenticated';

  const outcome = (isAdmin: boolean): Outcome => {
    if (!truth.active) return 'unauthenticated';
    if (truth.tier === 'starter') return 'tier_required';
    return isAdmin ? 'ok' : 'admin_required';
  };
  async function change(apply: () => Promise<unknown>): Promise<void> {
    for (const each of [token, user, former]) Object.assign(each, { expected: undefined, changes: each.changes + 1 });
    await apply();
    for (const each of [token, user, former]) each.changes++;
    [token.expected, user.expected] = [outcome(true), outcome(truth.isAdmin)];
    former.expected = 'unauthenticated';
  }
  const id = tenant.organizationId;
  const setTier = (tier: string) => async () => {
    await auth.setOrganizationTier({ id, tier }, stack.operator.as());
    truth.tier = tier;
  };
  const setActive = (active: boolean) => async () => {
    await auth[active ? 'activateOrganization' : 'deactivateOrganization']({ id }, stack.operator.as());
    truth.active = active;
  };
  const setAdmin = (isAdmin: boolean) => async () => {
    await auth.setUserRoles({ email, roles: isAdmin ? ['admin'] : [] }, asOperator);
    truth.isAdmin = isAdmin;
  };
  const rotate = async () => {
    const { value } = await auth.rotateServerToken({ idOrName: 'tests', overlapSeconds: 0 }, asAdmin);
    [former.bearer, token.bearer] = [token.bearer, value];
  };
  const steps = [
    ...[setAdmin(false), setTier('starter'), rotate, setTier('professional'), setAdmin(true)],
    ...[setActive(false), setActive(true), rotate, setTier('enterprise')],
  ];
  return { callers: [token, user, former], changes: steps.map((step) => () => change(step)) };
}

it('no answer is older than a change of tokens, roles, tier or organization that was answered before it was sent', async () => {
  const subjects = await Promise.all(Array.from({ length: ORGANIZATIONS }, (_, index) => makeSubject(index)));
  const callers = subjects.flatMap((subject) => subject.callers);
  const hammer = startHammer(stack.baseUrls, '/api/agent/run', callers, CONNECTIONS);
  for (let round = 0; round < ROUNDS; round++)
    for (const step of subjects[0]!.changes.keys()) {
      await Promise.all(subjects.map(({ changes }) => changes[step]!()));
      await hammer.answered(REQUESTS_AFTER_A_CHANGE);
    }
  await hammer.stop();
  const { certain, unavailable, wrong } = hammer.counts;
  process.stdout.write(`hammer: ${certain} answers checked, ${unavailable} unavailable, ${wrong.length} wrong\n`);
  expect(wrong).toEqual([]);
  expect(certain).toBeGreaterThan(subjects[0]!.changes.length * REQUESTS_AFTER_A_CHANGE - 1);
});
