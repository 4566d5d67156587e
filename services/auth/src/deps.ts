import type { Clock } from 'platform/core/clock.ts';
import { keyedMutex, type KeyedMutex } from 'platform/core/keyed-mutex.ts';
import type { EventBus, Subscription } from 'platform/events/bus.ts';
import type { Log } from 'platform/core/log.ts';
import { allMethodOptions, type MethodOptions } from 'platform/rpc/method-options.ts';
import type { Denials } from 'platform/events/denials.ts';
import type { Start } from 'platform/service/program.ts';
import type { Collection, PlatformStore } from 'platform/store/store.ts';
import { consumeAudit } from './audit/consume-audit.ts';
import { AUDIT_ENTRIES, openAuditTrail, type AuditTrail } from './audit/store.ts';
import type { Config } from './config.ts';
import { openOrganizations, ORGANIZATIONS, type Organizations } from './organizations/store.ts';
import { makeLastUsed, type LastUsed } from './authentication/last-used.ts';
import { openTokenLookup, type TokenLookup } from './authentication/token-lookup.ts';
import { openServerTokens, SERVER_TOKENS, type ServerTokens } from './server-tokens/store.ts';
import { MEMBERSHIPS, openUsers, USERS, type Users } from './users/store.ts';

export interface Deps {
  config: Config;
  clock: Clock;
  organizations: Organizations;
  users: Users;
  serverTokens: ServerTokens;
  tokenLookup: TokenLookup;
  auditTrail: AuditTrail;
  auditSubscription: Subscription;
  lastUsed: LastUsed;
  denials: Denials;
  /** Policy of every method of the contract, by full path. */
  policies: ReadonlyMap<string, MethodOptions>;
  /** Lets the writers of one organization's tokens take turns. */
  mutex: KeyedMutex;
  platformStore: PlatformStore;
  bus: EventBus;
  log: Log;
}

const COLLECTIONS = [
  ORGANIZATIONS,
  USERS,
  MEMBERSHIPS,
  SERVER_TOKENS,
  AUDIT_ENTRIES,
] as unknown as readonly Collection<never>[];

export async function openDeps({ config, clock, log, openStore, bus, denials }: Start<Config>): Promise<Deps> {
  const { store, platformStore } = await openStore(COLLECTIONS);
  const auditTrail = openAuditTrail(store, platformStore);
  return {
    config,
    clock,
    log,
    platformStore,
    bus,
    auditTrail,
    organizations: openOrganizations(platformStore),
    users: openUsers(store, platformStore),
    serverTokens: openServerTokens(store),
    tokenLookup: openTokenLookup(platformStore),
    auditSubscription: await consumeAudit({ auditTrail }, bus),
    mutex: keyedMutex(),
    lastUsed: makeLastUsed(),
    denials,
    policies: allMethodOptions(),
  };
}
