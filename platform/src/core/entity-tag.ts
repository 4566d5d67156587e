/**
 * The ETag of a reply in a content coding. The codings of one version are different bytes, so they may not share a
 * strong ETag (RFC 9110, 8.8.3.3; ADR 55). No service has "+" in a tag.
 * @param coding `identity` for the reply as it is
 */
export const tagInCoding = (etag: string, coding: string): string =>
  coding === 'identity' || etag.startsWith('W/') ? etag : `${etag.slice(0, -1)}+${coding}"`;

/** The ETag of the version that a tag in any coding names. */
export const withoutCoding = (etag: string): string => etag.replace(/\+[a-z]+"$/, '"');
