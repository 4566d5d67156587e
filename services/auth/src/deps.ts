import { AgentsServiceService } from 'proto/agents/v1/agents.ts';
import { CreditsServiceService } from 'proto/credits/v1/credits.ts';
import type { Clock } from 'platform/core/clock.ts';
import { keyedMutex, type KeyedMutex } from 'platform/core/keyed-mutex.ts';
import type { EventBus, Subscription } from 'platform/events/bus.ts';
import { allMethodOptions, type MethodOptions } from 'platform/rpc/method-options.ts';
import type { Denials } from 'platform/events/denials.ts';
import type { Start } from 'platform/service/program.ts';
import type { ServiceClient } from 'platform/rpc/call.ts';
import { keyFolderOf, masterKeyFileOf } from 'platform/rpc/keys.ts';
import { openSealing, type Sealing } from 'platform/core/sealing.ts';
import { consumeAudit } from './audit/consume-audit.ts';
import { readConsumer } from './audit/metrics.ts';
import { AUDIT_ENTRIES, AUDIT_HEADS, openAuditEntries, type AuditEntries } from './audit/store.ts';
import type { Config } from './config.ts';
import { openOrganizations, ORGANIZATIONS, type Organizations } from './organizations/store.ts';
import { makeLastUsed, type LastUsed } from './authentication/last-used.ts';
import type { ResolveBearers } from './authentication/known-bearer.ts';
import { openJwtLookup } from './authentication/jwt-lookup.ts';
import { resolveCallbackTokens } from './authentication/resolve-callback-tokens.ts';
import { resolveJwts } from './authentication/resolve-jwts.ts';
import { resolveServerTokens } from './authentication/resolve-server-tokens.ts';
import { openTokenLookup, type TokenLookup } from './authentication/token-lookup.ts';
import { GRANTS, openGrants, type Grants } from './grants/store.ts';
import type { Log } from 'platform/core/log.ts';
import { addKey } from './signing-keys/add-key.ts';
import { openPrivateKey } from './signing-keys/private-key.ts';
import { openSigningKeys, SIGNING_KEYS, type SigningKeys } from './signing-keys/store.ts';
import { makeRateBoard, type RateBoard } from './rates/board.ts';
import { openServerTokens, SERVER_TOKENS, type ServerTokens } from './server-tokens/store.ts';
import { MEMBERSHIPS, openUsers, USERS, type Users } from './users/store.ts';

export interface Deps {
  config: Config;
  clock: Clock;
  log: Log;
  organizations: Organizations;
  users: Users;
  serverTokens: ServerTokens;
  grants: Grants;
  signingKeys: SigningKeys;
  /** Of the private keys that sign JWTs. */
  sealing: Sealing;
  /** For the balance that whoami shows. */
  credits: Pick<ServiceClient<typeof CreditsServiceService>, 'getBalance'>;
  tokenLookup: TokenLookup;
  /** One for each form of bearer. */
  resolvers: readonly ResolveBearers[];
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

/** All that it stores. */
export const COLLECTIONS = [
  ORGANIZATIONS,
  USERS,
  MEMBERSHIPS,
  SERVER_TOKENS,
  GRANTS,
  SIGNING_KEYS,
  AUDIT_ENTRIES,
  AUDIT_HEADS,
];

/** @throws StartError for the master key */
export async function openDeps(start: Start<Config>): Promise<Deps> {
  const { config, clock, openStore, openBus, denials, metrics, connect, log } = start;
  const sealing = openSealing(config.MASTER_KEY_FILE || masterKeyFileOf(keyFolderOf(config.DATA_DIR)), { clock, log });
  const { store, platformStore } = await openStore(COLLECTIONS);
  const bus = await openBus();
  const auditEntries = openAuditEntries(store, platformStore);
  const tokenLookup = openTokenLookup(platformStore);
  const jwtLookup = openJwtLookup(platformStore);
  const signingKeys = openSigningKeys(platformStore);
  readConsumer(metrics, bus);
  await makeFirstKey({ signingKeys, sealing, clock }, log);
  return {
    config,
    clock,
    log,
    bus,
    auditEntries,
    organizations: openOrganizations(platformStore),
    users: openUsers(store, platformStore),
    serverTokens: openServerTokens(store),
    tokenLookup,
    resolvers: [
      resolveServerTokens({ tokenLookup }),
      resolveJwts({ jwtLookup, signingKeys, config }),
      resolveCallbackTokens({ agents: connect(AgentsServiceService, 'agents') }),
    ],
    grants: openGrants(store, platformStore),
    signingKeys,
    sealing,
    credits: connect(CreditsServiceService, 'credits'),
    auditSubscription: await consumeAudit({ auditEntries }, bus),
    mutex: keyedMutex(),
    lastUsed: makeLastUsed(),
    denials,
    rates: makeRateBoard(),
    methodOptions: allMethodOptions(),
  };
}

/** Of several replicas that start together, one makes it. */
async function makeFirstKey(deps: Pick<Deps, 'signingKeys' | 'sealing' | 'clock'>, log: Log): Promise<void> {
  const keys = await deps.signingKeys.all();
  if (keys.length === 0) await addKey(deps, keys, { signsAfterMs: 0 });
  try {
    if (keys[0]) openPrivateKey(deps.sealing, keys[0]);
  } catch {
    log.error(
      {},
      'MASTER_KEY_FILE does not hold the key under which the signing key is sealed, so no JWT can be issued here; ' +
        'give all replicas the same file, or run "npm run admin -- jwt rotate-key --withdraw"',
    );
  }
}
