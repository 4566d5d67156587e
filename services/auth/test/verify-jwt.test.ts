import fc from 'fast-check';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { newId } from 'platform/core/ids.ts';
import { resolveJwts } from '../src/authentication/resolve-jwts.ts';
import { isTimely, kidOf, verifyJwt } from '../src/authentication/verify-jwt.ts';
import type { Json } from './jwts.ts';

const ISSUER = 'https://api.example.com';
const NOW_S = 1_800_000_000;
const kid = newId();
const [sub, organizationId, grant] = [newId(), newId(), newId()];
const CLAIMS: Json = {
  ...{ iss: ISSUER, aud: ISSUER, sub, jti: newId(), iat: NOW_S, nbf: NOW_S, exp: NOW_S + 3_600 },
  ...{ org_id: organizationId, org_roles: ['admin'], client_id: 'admin-cli', grant },
};

let publicKey: string;
let sign: (claims: Json) => Promise<string>;
beforeAll(async () => {
  const pair = await generateKeyPair('ES256', { extractable: true });
  publicKey = JSON.stringify(await exportJWK(pair.publicKey));
  sign = (claims) => new SignJWT(claims).setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid }).sign(pair.privateKey);
});
const verify = (jwt: string) => verifyJwt(jwt, { publicKey }, ISSUER);
const without = (claim: string): Json => Object.fromEntries(Object.entries(CLAIMS).filter(([name]) => name !== claim));

it('reads the claims of a JWT that our key has signed', async () => {
  const jwt = await sign(CLAIMS);
  expect(kidOf(jwt)).toBe(kid);
  expect(await verify(jwt)).toEqual({
    ...{ userId: sub, organizationId, grantId: grant },
    ...{ issuedAt: NOW_S * 1_000, notBefore: NOW_S * 1_000, expiresAt: (NOW_S + 3_600) * 1_000 },
  });
});

it.each<[string, Json]>([
  ['for another issuer', { iss: 'https://other.example.com' }],
  ['for an issuer that only begins like ours', { iss: `${ISSUER}/` }],
  ['for another audience', { aud: 'https://other.example.com' }],
  ['for no audience of a list', { aud: ['https://other.example.com'] }],
  ['whose user is no id', { sub: 'ada@example.com' }],
  ['whose user is a list', { sub: [sub] }],
  ['whose organization is no id', { org_id: '../x' }],
  ['whose organization is an object', { org_id: { $ne: '' } }],
  ['whose grant is null', { grant: null }],
  ['whose end is text', { exp: 'never' }],
  ['whose time of issue is text', { iat: String(NOW_S) }],
  ['whose begin is null', { nbf: null }],
])('refuses a JWT of our key %s', async (_, change) => {
  expect(await verify(await sign({ ...CLAIMS, ...change }))).toBeUndefined();
});

it.each(Object.keys(CLAIMS).filter((name) => name !== 'org_roles'))(
  'refuses a JWT of our key without %s',
  async (name) => {
    expect(await verify(await sign(without(name)))).toBeUndefined();
  },
);

it.each<[string, Json, number]>([
  ['with its grant', {}, 1],
  ['with a grant of another organization', { org_id: newId() }, 0],
  ['with a grant of another user', { sub: newId() }, 0],
])('a JWT of our key %s: %j', async (_, change, known) => {
  const [nowMs, now] = [NOW_S * 1_000, new Date(NOW_S * 1_000).toISOString()];
  const claims = { ...CLAIMS, ...change };
  const member = {
    _id: newId(),
    email: 'ada@example.com',
    name: 'Ada',
    roles: [],
    groups: [],
    revision: 1,
    createdAt: now,
  };
  const granted = {
    _id: grant,
    organizationId,
    userId: sub,
    email: 'ada@example.com',
    clientId: 'c',
    createdBy: '',
    createdAt: now,
  };
  const resolve = resolveJwts({
    jwtLookup: {
      grants: async () => [{ ...granted, expiresAt: new Date(nowMs + 3_600_000).toISOString(), revokedAt: null }],
      memberships: async (userIds) =>
        userIds.map((userId) => ({ ...member, organizationId: claims.org_id as string, userId })),
    },
    signingKeys: {
      all: async () => [
        { _id: kid, generation: 1, publicKey, sealed: '', createdAt: now, signsFrom: now, withdrawn: false },
      ],
    },
    config: { JWT_ISSUER: ISSUER },
  });
  const { signal } = new AbortController();
  const bearers = [await sign(claims)];
  expect((await resolve(bearers, { nowMs, attempts: [], deadline: Number.MAX_SAFE_INTEGER, signal })).size).toBe(known);
});

it('a JWT has one spelling: with any one character changed, added or removed it is refused', async () => {
  const jwt = await sign(CLAIMS);
  const character = fc.constantFrom(...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+/ \n');
  const place = fc.nat({ max: jwt.length - 1 });
  await fc.assert(
    fc.asyncProperty(place, character, fc.constantFrom(0, 1), async (at, given, removed) => {
      const changed = jwt.slice(0, at) + given + jwt.slice(at + removed);
      fc.pre(changed !== jwt);
      expect(kidOf(changed) === kid && (await verify(changed))).toBeFalsy();
    }),
  );
  const last = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'].map(
    (end) => jwt.slice(0, -1) + end,
  );
  const accepted = [];
  for (const one of last) if (kidOf(one) === kid && (await verify(one))) accepted.push(one);
  expect(accepted).toEqual([jwt]);
});

it.each<[string, Partial<Record<'issuedAt' | 'notBefore' | 'expiresAt', number>>, boolean]>([
  ['now', {}, true],
  ['issued by a clock that is a minute ahead', { issuedAt: 60_000 }, true],
  ['issued in the future', { issuedAt: 60_001 }, false],
  ['not good before a minute from now', { notBefore: 60_000 }, true],
  ['not good before later', { notBefore: 60_001 }, false],
  ['at its end', { expiresAt: 0 }, false],
  ['a millisecond before its end', { expiresAt: 1 }, true],
])('is timely: %s', (_, change, expected) => {
  const times = { issuedAt: 0, notBefore: 0, expiresAt: 3_600_000, ...change };
  expect(isTimely({ userId: sub, organizationId, grantId: grant, ...times }, 0)).toBe(expected);
});
