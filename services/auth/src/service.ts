import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { relayJob } from 'platform/events/relay.ts';
import { flushDenials, denialsJob } from 'platform/events/denials-job.ts';
import type { Program } from 'platform/service/run.ts';
import { served } from 'platform/rpc/server.ts';
import { listAuditEntries } from './audit/list-audit-entries.ts';
import { SOURCE } from './events.ts';
import { config } from './config.ts';
import { openDeps, type Deps } from './deps.ts';
import { auditRetentionJob } from './jobs/audit-retention.ts';
import { deadLettersJob } from './jobs/dead-letters.ts';
import { flushLastUsed, lastUsedJob } from './jobs/last-used.ts';
import { activateOrganization } from './organizations/activate-organization.ts';
import { createOrganization } from './organizations/create-organization.ts';
import { deactivateOrganization } from './organizations/deactivate-organization.ts';
import { getOrganization } from './organizations/get-organization.ts';
import { listOrganizations } from './organizations/list-organizations.ts';
import { setOrganizationTier } from './organizations/set-organization-tier.ts';
import { authenticate } from './authentication/authenticate.ts';
import { createServerToken } from './server-tokens/create-server-token.ts';
import { listServerTokens } from './server-tokens/list-server-tokens.ts';
import { revokeServerToken } from './server-tokens/revoke-server-token.ts';
import { assumeUser } from './users/assume-user.ts';
import { createUser } from './users/create-user.ts';
import { listUsers } from './users/list-users.ts';
import { removeUser } from './users/remove-user.ts';
import { setUserGroups } from './users/set-user-groups.ts';
import { setUserRoles } from './users/set-user-roles.ts';

const refusalsOf = ({ denials, platformStore }: Deps) => ({ denials, platformStore, source: SOURCE });

export const program: Program<typeof config, Deps> = {
  name: 'auth',
  config,
  calls: [],
  openDeps,
  services: (deps) => [
    served(AuthServiceService, {
      authenticate: (request) => authenticate(deps, request),
      createOrganization: (request, context) => createOrganization(deps, request, context),
      listOrganizations: (request) => listOrganizations(deps, request),
      getOrganization: (request) => getOrganization(deps, request),
      deactivateOrganization: (request, context) => deactivateOrganization(deps, request, context),
      activateOrganization: (request, context) => activateOrganization(deps, request, context),
      setOrganizationTier: (request, context) => setOrganizationTier(deps, request, context),
      createUser: (request, context) => createUser(deps, request, context),
      listUsers: (request, context) => listUsers(deps, request, context),
      setUserRoles: (request, context) => setUserRoles(deps, request, context),
      setUserGroups: (request, context) => setUserGroups(deps, request, context),
      removeUser: (request, context) => removeUser(deps, request, context),
      assumeUser: (request, context) => assumeUser(deps, request, context),
      createServerToken: (request, context) => createServerToken(deps, request, context),
      listServerTokens: (request, context) => listServerTokens(deps, request, context),
      revokeServerToken: (request, context) => revokeServerToken(deps, request, context),
      listAuditEntries: (request, context) => listAuditEntries(deps, request, context),
    }),
  ],
  jobs: (deps) => [
    relayJob({
      platformStore: deps.platformStore,
      bus: deps.bus,
      log: deps.log,
      intervalMs: deps.config.RELAY_INTERVAL_MS,
    }),
    lastUsedJob(deps),
    denialsJob({ ...refusalsOf(deps), intervalMs: deps.config.REFUSAL_FLUSH_MS }),
    auditRetentionJob(deps),
    deadLettersJob(deps),
  ],
  async close(deps) {
    await deps.auditSubscription.stop();
    await flushLastUsed(deps);
    await flushDenials(refusalsOf(deps));
  },
};
