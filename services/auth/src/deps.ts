import type { Clock } from 'platform/core/clock.ts';
import { keyedMutex, type KeyedMutex } from 'platform/core/keyed-mutex.ts';
import type { EventBus, Subscription } from 'platform/events/bus.ts';
import type { Log } from 'platform/core/log.ts';
import { methodPolicies, type MethodPolicy } from 'platform/rpc/method-options.ts';
import { makeDenials, type Denials } from 'platform/events/denials.ts';
import type { Start } from 'platform/service/run.ts';
import type { Collection, PlatformStore } from 'platform/store/store.ts';
import { consumeAudit } from './audit/consume-audit.ts';
import { AUDIT_ENTRIES, openAuditEntries, type AuditEntries } from './audit/store.ts';
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
  auditEntries: AuditEntries;
  /** The consumer of topic audit.v1. */
  auditSubscription: Subscription;
  /** Uses of server tokens that are not yet in the store. */
  lastUsed: LastUsed;
  denials: Denials;
  /** The options that the protos declare for each method, by full path ("/memory.v1.MemoryService/ListMemoryTypes"). */
  methodOptions: ReadonlyMap<string, MethodPolicy>;
  /** Makes this process create the server tokens of one organization one at a time. */
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

export async function openDeps({ config, clock, log, openStore, openBus }: Start<Config>): Promise<Deps> {
  const { store, platformStore } = await openStore(COLLECTIONS);
  const bus = await openBus(['audit.v1']);
  const auditEntries = openAuditEntries(store, platformStore);
  return {
    config,
    clock,
    log,
    platformStore,
    bus,
    auditEntries,
    organizations: openOrganizations(platformStore),
    users: openUsers(store, platformStore),
    serverTokens: openServerTokens(store),
    tokenLookup: openTokenLookup(platformStore),
    auditSubscription: await consumeAudit({ auditEntries }, bus),
    mutex: keyedMutex(),
    lastUsed: makeLastUsed(),
    denials: makeDenials(),
    methodOptions: methodPolicies(),
  };
}
