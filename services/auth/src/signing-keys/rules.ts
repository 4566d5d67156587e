import { DAY_MS, HOUR_MS } from 'platform/core/clock.ts';

export const ALGORITHM = 'ES256';
/** What a private key is sealed for. */
export const purposeOf = (kid: string): string => `signing-key:${kid}`;

/** How long a JWT is good. */
export const JWT_MS = HOUR_MS;
/** Clocks of those who check JWTs may differ by this. */
export const SKEW_MS = 60_000;
/** Readers may keep the published keys for this long. */
export const JWKS_MAX_AGE_S = 300;
/** A key is published this long before it signs, so that every reader knows it by then. */
export const PUBLISHED_BEFORE_MS = 2 * JWKS_MAX_AGE_S * 1_000;

/** What of a key decides when it is used. */
interface Key {
  /** ISO-8601 UTC. */
  signsFrom: string;
  withdrawn: boolean;
}

/** The key that signs: of those that may, the newest. @param keys newest first */
export const signingKeyAt = <K extends Key>(keys: readonly K[], nowMs: number): K | undefined =>
  keys.find(({ signsFrom, withdrawn }) => !withdrawn && Date.parse(signsFrom) <= nowMs);

/**
 * The keys whose JWTs may be good: those that sign or will, and those whose last JWT has not ended.
 * @param keys newest first
 */
export const acceptedKeysAt = <K extends Key>(keys: readonly K[], nowMs: number): K[] =>
  keys.filter(({ withdrawn }, index) => {
    const next = keys.slice(0, index).findLast((newer) => !newer.withdrawn);
    return !withdrawn && (!next || nowMs < Date.parse(next.signsFrom) + JWT_MS + SKEW_MS);
  });

/** Whether it is time for the next key. @param keys newest first */
export const isRotationDue = ([newest]: readonly Key[], nowMs: number, days: number): boolean =>
  !newest || newest.withdrawn || nowMs >= Date.parse(newest.signsFrom) + days * DAY_MS - PUBLISHED_BEFORE_MS;
