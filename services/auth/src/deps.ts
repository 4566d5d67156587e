import type { Clock } from 'platform/core/clock.ts';
import { keyedMutex, type KeyedMutex } from 'platform/core/keyed-mutex.ts';
import type { EventBus, Subscription } from 'platform/events/bus.ts';
import { allMethodOptions, type MethodOptions } from 'platform/rpc/method-options.ts';
import type { Denials } from 'platform/events/denials.ts';
import type { Start } from 'platform/service/program.ts';
import { consumeAudit } from './audit/consume-audit.ts';
import { AUDIT_ENTRIES, openAuditEntries, type AuditEntries } from './audit/store.ts';
import type { Config } from './config.ts';
import { openOrganizations, ORGANIZATIONS, type Organizations } from './organizations/store.ts';
import { makeLastUsed, type LastUsed } from './authentication/last-used.ts';
import { openTokenLookup, type TokenLookup } from './authentication/token-lookup.ts';
import { makeRateBoard, type RateBoard } from './rates/board.ts';
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
  /** What the gateways have admitted lately. */
  rates: RateBoard;
  /** The options that the protos declare for each method, by full path ("/memory.v1.MemoryService/ListMemoryTypes"). */
  methodOptions: ReadonlyMap<string, MethodOptions>;
  /** Makes this process create the server tokens of one organization one at a time. */
  mutex: KeyedMutex;
  bus: EventBus;
}

const COLLECTIONS = [ORGANIZATIONS, USERS, MEMBERSHIPS, SERVER_TOKENS, AUDIT_ENTRIES];

export async function openDeps({ config, clock, openStore, openBus, denials }: Start<Config>): Promise<Deps> {
  const { store, platformStore } = await openStore(COLLECTIONS);
  const bus = await openBus();
  const auditEntries = openAuditEntries(store, platformStore);
  return {
    config,
    clock,
    bus,
    auditEntries,
    organizations: openOrganizations(platformStore),
    users: openUsers(store, platformStore),
    serverTokens: openServerTokens(store),
    tokenLookup: openTokenLookup(platformStore),
    auditSubscription: await consumeAudit({ auditEntries }, bus),
    mutex: keyedMutex(),
    lastUsed: makeLastUsed(),
    denials,
    rates: makeRateBoard(),
    methodOptions: allMethodOptions(),
  };
}
