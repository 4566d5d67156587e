import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { systemClock } from 'platform/core/clock.ts';
import { masterKeysOf } from 'platform/jobs/reseal.ts';
import { masterKeyCheck } from 'platform/service/master-key-check.ts';
import type { Program } from 'platform/service/program.ts';
import { bind } from 'platform/rpc/call.ts';
import { exportAuditEntries } from './audit/export-audit-entries.ts';
import { listAuditEntries } from './audit/list-audit-entries.ts';
import { CONSUMER_METRICS } from './audit/metrics.ts';
import { verifyAuditTrail } from './audit/verify-audit-trail.ts';
import { openAuditEntries } from './audit/store.ts';
import { verifyTrails } from './audit/verify-trails.ts';
import { config } from './config.ts';
import { COLLECTIONS, openDeps, type Deps } from './deps.ts';
import { auditRetentionJob } from './jobs/audit-retention.ts';
import { deadLettersJob } from './jobs/dead-letters.ts';
import { eventRetentionJob } from './jobs/event-retention.ts';
import { flushLastUsed, lastUsedJob } from './jobs/last-used.ts';
import { recordDenials } from './denials/record-denials.ts';
import { activateOrganization } from './organizations/activate-organization.ts';
import { createOrganization } from './organizations/create-organization.ts';
import { deactivateOrganization } from './organizations/deactivate-organization.ts';
import { getOrganization } from './organizations/get-organization.ts';
import { listOrganizations } from './organizations/list-organizations.ts';
import { listTiers } from './organizations/list-tiers.ts';
import { setOrganizationTier } from './organizations/set-organization-tier.ts';
import { whoAmI } from './authentication/who-am-i.ts';
import { issueJwt } from './grants/issue-jwt.ts';
import { listGrants } from './grants/list-grants.ts';
import { revokeGrant } from './grants/revoke-grant.ts';
import { grantRetentionJob } from './jobs/grant-retention.ts';
import { resealSigningKeysJob, sealedSigningKeys } from './jobs/reseal.ts';
import { signingKeysJob } from './jobs/signing-keys.ts';
import { getJwks } from './signing-keys/get-jwks.ts';
import { signingKeyCheck } from './signing-keys/check.ts';
import { openSigningKeys } from './signing-keys/store.ts';
import { rotateSigningKey } from './signing-keys/rotate-signing-key.ts';
import { authenticate } from './authentication/authenticate.ts';
import { findStoppedActors } from './authentication/find-stopped-actors.ts';
import { shareRates } from './rates/share-rates.ts';
import { createServerToken } from './server-tokens/create-server-token.ts';
import { listServerTokens } from './server-tokens/list-server-tokens.ts';
import { revokeServerToken } from './server-tokens/revoke-server-token.ts';
import { rotateServerToken } from './server-tokens/rotate-server-token.ts';
import { assumeUser } from './users/assume-user.ts';
import { createUser } from './users/create-user.ts';
import { listUsers } from './users/list-users.ts';
import { removeUser } from './users/remove-user.ts';
import { setUserGroups } from './users/set-user-groups.ts';
import { setUserRoles } from './users/set-user-roles.ts';

export const program: Program<typeof config, Deps> = {
  name: 'auth',
  config,
  calls: ['credits', 'agents'],
  publishes: ['audit.v1'],
  metrics: CONSUMER_METRICS,
  openDeps,
  services: (deps) => [
    bind(AuthServiceService, deps, {
      authenticate,
      findStoppedActors,
      shareRates,
      recordDenials,
      createOrganization,
      listOrganizations,
      getOrganization,
      deactivateOrganization,
      activateOrganization,
      setOrganizationTier,
      listTiers,
      createUser,
      listUsers,
      setUserRoles,
      setUserGroups,
      removeUser,
      assumeUser,
      createServerToken,
      listServerTokens,
      rotateServerToken,
      revokeServerToken,
      issueJwt,
      listGrants,
      revokeGrant,
      rotateSigningKey,
      getJwks,
      whoAmI,
      listAuditEntries,
      verifyAuditTrail,
      exportAuditEntries,
    }),
  ],
  jobs: (deps) => [
    lastUsedJob(deps),
    auditRetentionJob(deps),
    grantRetentionJob(deps),
    signingKeysJob(deps),
    resealSigningKeysJob(deps),
    deadLettersJob(deps),
    ...(deps.bus.removeExpired ? [eventRetentionJob(deps, deps.bus.removeExpired)] : []),
  ],
  checks: (deps) => [signingKeyCheck(deps), masterKeyCheck(deps.sealing, sealedSigningKeys(deps))],
  copy: {
    collections: COLLECTIONS,
    chains: (_, { store, platformStore }) => verifyTrails(openAuditEntries(store, platformStore)),
    masterKeys: ({ platformStore }) =>
      masterKeysOf(sealedSigningKeys({ signingKeys: openSigningKeys(platformStore), clock: systemClock })),
  },
  async close(deps) {
    deps.sealing.close();
    await deps.auditSubscription.stop();
    await flushLastUsed(deps);
  },
};
