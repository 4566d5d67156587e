import { fullFormats } from 'ajv-formats/dist/formats.js';

const PARTS = /^(?:([^:/?#]+):)?(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#([^]*))?$/;
const SCHEME = /^[a-z][a-z0-9+\-.]*$/i;
const NOT_IN_USER = /[^a-z0-9\-._~!$&'()*+,;=:%]|%(?![0-9a-f]{2})/i;
const NOT_IN_NAME = /[^a-z0-9\-._~!$&'()*+,;=%]|%(?![0-9a-f]{2})/i;
const NOT_IN_PATH = /[^a-z0-9\-._~!$&'()*+,;=:@/%]|%(?![0-9a-f]{2})/i;
const NOT_IN_QUERY = /[^a-z0-9\-._~!$&'()*+,;=:@/?%]|%(?![0-9a-f]{2})/i;
/** "]" is in neither kind of literal, so the port begins after the first one. */
const LITERAL_AND_PORT = /^\[([^\]]*)\](?::\d*)?$/;
const FUTURE_ADDRESS = /^v[0-9a-f]+\.[a-z0-9\-._~!$&'()*+,;=:]+$/i;
const IPV6 = fullFormats.ipv6 as RegExp;
const IPV6_LENGTH = 45;

/** RFC 3986, appendix A, by the parts of appendix B. */
export function isUriReference(text: string): boolean {
  const [, scheme, authority, path = '', query = '', fragment = ''] = PARTS.exec(text) ?? [];
  return (
    (scheme === undefined ? authority !== undefined || !path.startsWith(':') : SCHEME.test(scheme)) &&
    (authority === undefined || isAuthority(authority)) &&
    !NOT_IN_PATH.test(path) &&
    !NOT_IN_QUERY.test(query) &&
    !NOT_IN_QUERY.test(fragment)
  );
}

/** With a scheme: where there is none, a colon comes first or after another delimiter. */
export const isUri = (text: string): boolean => /^[^:/?#]+:/.test(text) && isUriReference(text);

function isAuthority(text: string): boolean {
  const at = text.indexOf('@');
  if (at >= 0 && NOT_IN_USER.test(text.slice(0, at))) return false;
  const hostAndPort = text.slice(at + 1);
  if (hostAndPort.startsWith('[')) {
    const literal = LITERAL_AND_PORT.exec(hostAndPort)?.[1];
    return literal !== undefined && (isIpv6(literal) || FUTURE_ADDRESS.test(literal));
  }
  const colon = hostAndPort.indexOf(':');
  if (colon < 0) return !NOT_IN_NAME.test(hostAndPort);
  return !NOT_IN_NAME.test(hostAndPort.slice(0, colon)) && !/[^0-9]/.test(hostAndPort.slice(colon + 1));
}

const isIpv6 = (text: string): boolean => text.length <= IPV6_LENGTH && IPV6.test(text);
