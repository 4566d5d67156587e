import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { jwtVerify, SignJWT, decodeJwt } from 'jose';
import { machineClock, type Clock } from '../core/clock.ts';
import { ServiceError } from '../core/errors.ts';
import type { Peers } from './keys.ts';
import { Principal } from '../core/principal.ts';
import { StartError } from '../core/start-error.ts';

/** Which process calls, and for whom: made by the caller's own key, checked by the audience with the caller's public key. */
export interface Asserted {
  caller: string;
  principal: Principal;
}
export interface Identity {
  readonly name: string;
  /** Signed assertion for one audience; made once per principal and half minute. */
  sign(audience: string, principal: Principal): Promise<string>;
  /** @throws ServiceError UNAUTHENTICATED */
  verify(assertion: string): Promise<Asserted>;
}

/** "operator:ada" -> "operator": how the `callers` of a method's options name a process. */
export const callerRole = (caller: string): string => caller.split(':', 1)[0]!;

const REUSE_MS = 30_000;
const LIFETIME_MS = 60_000;
// Clocks of two machines may be this far apart; the assertion never leaves the cluster's own connections.
const SKEW_MS = 10 * 60_000;
const REMEMBERED = 10_000;

/**
 * Goes by the machine's own clock: not every process is on the store whose time the services use.
 * @throws StartError when the key or the file of peers cannot be read
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
  const verified = new Map<string, Asserted & { until: number }>();

  return {
    name,
    async sign(audience, principal) {
      const encoded = Buffer.from(Principal.encode(principal).finish()).toString('base64');
      const key = `${audience} ${encoded}`;
      const now = clock.now();
      const known = signed.get(key);
      if (known && known.until > now) return known.assertion;
      const assertion = await new SignJWT({ principal: encoded })
        .setProtectedHeader({ alg: 'EdDSA', typ: 'assertion+jwt' })
        .setIssuer(name)
        .setAudience(audience)
        .setExpirationTime(Math.floor((now + LIFETIME_MS) / 1000))
        .sign(privateKey);
      remember(signed, key, { assertion, until: now + REUSE_MS });
      return assertion;
    },
    async verify(assertion) {
      const now = clock.now();
      const known = verified.get(assertion);
      if (known && known.until > now) return known;
      const asserted = await verifyOnce(assertion, name, peers, now);
      remember(verified, assertion, asserted);
      return asserted;
    },
  };
}

async function verifyOnce(
  assertion: string,
  audience: string,
  peers: ReadonlyMap<string, KeyObject[]>,
  now: number,
): Promise<Asserted & { until: number }> {
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
    const asserted = {
      caller: iss,
      principal: Principal.decode(Buffer.from(principal, 'base64')),
      until: exp * 1000 + SKEW_MS,
    };
    if (!mayAssert(asserted)) break;
    return asserted;
  }
  throw new ServiceError('UNAUTHENTICATED', 'The call carries no valid identity');
}

/** A job speaks only as itself, an operator only as itself or openly on behalf of a user; nobody else is an operator. */
function mayAssert({ caller, principal }: Asserted): boolean {
  const operatorName = callerRole(caller) === 'operator' ? caller.slice('operator:'.length) : undefined;
  switch (principal.kind) {
    case 'OPERATOR':
      return operatorName !== undefined && principal.subject === operatorName && principal.name === operatorName;
    case 'USER':
      return operatorName === undefined || principal.via === operatorName;
    case 'SERVER_TOKEN':
      return operatorName === undefined;
    case 'SERVICE':
      return principal.subject === caller;
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

function remember<V>(memory: Map<string, V>, key: string, value: V): void {
  if (memory.size >= REMEMBERED) memory.delete(memory.keys().next().value as string);
  memory.set(key, value);
}

function readKey(name: string, keyFile: string): KeyObject {
  try {
    return createPrivateKey(readFileSync(keyFile, 'utf8'));
  } catch (error) {
    throw new StartError(`The key of ${name} ${whyNot(keyFile, error)}; "npm run admin -- keys create" makes it`, {
      cause: error,
    });
  }
}

function readPeers(peersFile: string): ReadonlyMap<string, KeyObject[]> {
  try {
    const peers = JSON.parse(readFileSync(peersFile, 'utf8')) as Peers;
    return new Map(Object.entries(peers).map(([name, keys]) => [name, keys.map((key) => createPublicKey(key))]));
  } catch (error) {
    throw new StartError(
      `The file of public keys ${whyNot(peersFile, error)}; "npm run admin -- keys create" makes it`,
      { cause: error },
    );
  }
}

const whyNot = (file: string, error: unknown): string =>
  (error as NodeJS.ErrnoException).code === 'ENOENT'
    ? `is missing: there is no ${file}`
    : `cannot be read from ${file} (${(error as Error).message})`;
