import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { jwtVerify, SignJWT, decodeJwt } from 'jose';
import { machineClock, type Clock } from '../core/clock.ts';
import { ServiceError } from '../core/errors.ts';
import type { Peers } from './keys.ts';
import { Principal } from '../core/principal.ts';
import { StartError } from '../core/start-error.ts';

/**
 * What an assertion claims: which process calls, and for which principal. The caller signs it with its private key; the
 * audience, which is the called process, verifies it with the caller's public key.
 */
export interface AssertionClaims {
  caller: string;
  principal: Principal;
}
export interface Identity {
  readonly name: string;
  /** Makes a signed assertion for one audience; reused for 30 s for the same audience and principal. */
  sign(audience: string, principal: Principal): Promise<string>;
  /** @throws ServiceError UNAUTHENTICATED */
  verify(assertion: string): Promise<AssertionClaims>;
}

/** "operator:ada" -> "operator": how the `callers` of a method's options name a process. */
export const callerRole = (caller: string): string => caller.split(':', 1)[0]!;

const REUSE_MS = 30_000;
const LIFETIME_MS = 60_000;
// Tolerated difference between the clocks of two machines. It may be this large because an assertion is only ever sent
// over connections between processes of the cluster.
const SKEW_MS = 10 * 60_000;
const MAX_CACHED = 10_000;

/**
 * Uses the machine's own clock, not the store's time: the gateway and the admin command line have no store.
 * @throws StartError when the private key or the file of public keys cannot be read
 */
export function openIdentity({
  name,
  keyFile,
  peersFile,
  clock = machineClock,
}: {
  name: string;
  keyFile: string;
  peersFile: string;
  clock?: Clock;
}): Identity {
  const privateKey = readKey(name, keyFile);
  const peers = readPeers(peersFile);
  const signed = new Map<string, { assertion: string; until: number }>();
  const verified = new Map<string, AssertionClaims & { until: number }>();

  return {
    name,
    async sign(audience, principal) {
      const encoded = Buffer.from(Principal.encode(principal).finish()).toString('base64');
      const key = `${audience} ${encoded}`;
      const now = clock.now();
      const cached = signed.get(key);
      if (cached && cached.until > now) return cached.assertion;
      const assertion = await new SignJWT({ principal: encoded })
        .setProtectedHeader({ alg: 'EdDSA', typ: 'assertion+jwt' })
        .setIssuer(name)
        .setAudience(audience)
        .setExpirationTime(Math.floor((now + LIFETIME_MS) / 1000))
        .sign(privateKey);
      addToCache(signed, key, { assertion, until: now + REUSE_MS });
      return assertion;
    },
    async verify(assertion) {
      const now = clock.now();
      const cached = verified.get(assertion);
      if (cached && cached.until > now) return cached;
      const claims = await verifyUncached(assertion, name, peers, now);
      addToCache(verified, assertion, claims);
      return claims;
    },
  };
}

async function verifyUncached(
  assertion: string,
  audience: string,
  peers: ReadonlyMap<string, KeyObject[]>,
  now: number,
): Promise<AssertionClaims & { until: number }> {
  for (const key of peers.get(issuerOf(assertion)) ?? []) {
    const verification = await jwtVerify(assertion, key, {
      algorithms: ['EdDSA'],
      typ: 'assertion+jwt',
      audience,
      requiredClaims: ['iss', 'exp', 'principal'],
      clockTolerance: SKEW_MS / 1000,
      currentDate: new Date(now),
    }).catch(() => undefined);
    if (!verification) continue;
    const { iss, exp, principal } = verification.payload as { iss: string; exp: number; principal: string };
    const claims = {
      caller: iss,
      principal: Principal.decode(Buffer.from(principal, 'base64')),
      until: exp * 1000 + SKEW_MS,
    };
    if (!mayAssert(claims)) break;
    return claims;
  }
  throw new ServiceError('UNAUTHENTICATED', 'The call carries no valid identity');
}

/**
 * A service may act for users and server tokens, and as a service only as itself. An operator may act as itself, or for
 * a user whose `via` names this operator. Only an operator may act as an operator. Subject, name and `via` go into the
 * audit trail; auth checks those of a user (authority.ts).
 */
function mayAssert({ caller, principal }: AssertionClaims): boolean {
  const operatorName = callerRole(caller) === 'operator' ? caller.slice('operator:'.length) : undefined;
  const { subject, name, via } = principal;
  switch (principal.kind) {
    case 'OPERATOR':
      return operatorName !== undefined && subject === operatorName && name === operatorName && via === '';
    case 'USER':
      return operatorName === undefined || via === operatorName;
    case 'SERVER_TOKEN':
      return operatorName === undefined && via === '';
    case 'SERVICE':
      return subject === caller && name === caller && via === '';
    default:
      return false;
  }
}

function issuerOf(assertion: string): string {
  try {
    return decodeJwt(assertion).iss ?? '';
  } catch {
    return '';
  }
}

/** Removes the oldest entry when the cache is full. */
function addToCache<V>(cache: Map<string, V>, key: string, value: V): void {
  if (cache.size >= MAX_CACHED) cache.delete(cache.keys().next().value as string);
  cache.set(key, value);
}

function readKey(name: string, keyFile: string): KeyObject {
  try {
    return createPrivateKey(readFileSync(keyFile, 'utf8'));
  } catch (error) {
    throw new StartError(
      `The key of ${name} ${readFault(keyFile, error)}; check DATA_DIR, or make it with "npm run admin -- keys create"`,
      {
        cause: error,
      },
    );
  }
}

function readPeers(peersFile: string): ReadonlyMap<string, KeyObject[]> {
  try {
    const peers = JSON.parse(readFileSync(peersFile, 'utf8')) as Peers;
    return new Map(Object.entries(peers).map(([name, keys]) => [name, keys.map((key) => createPublicKey(key))]));
  } catch (error) {
    throw new StartError(
      `The file of public keys ${readFault(peersFile, error)}; check DATA_DIR, or make it with "npm run admin -- keys create"`,
      { cause: error },
    );
  }
}

const readFault = (file: string, error: unknown): string =>
  (error as NodeJS.ErrnoException).code === 'ENOENT'
    ? `is missing: there is no ${file}`
    : `cannot be read from ${file} (${(error as Error).message})`;
