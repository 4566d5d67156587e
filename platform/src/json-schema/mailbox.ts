import { fullFormats } from 'ajv-formats/dist/formats.js';

const ATOMS = /^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/i;
const QUOTED = /^"(?:[ !#-[\]-~]|\\[ -~])*"$/;
const DOMAIN = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/i;
const ADDRESS = /^\[(?:IPv6:([0-9a-f:.]*)|([0-9.]*))\]$/i;
const IPV4 = fullFormats.ipv4 as RegExp;
const IPV6 = fullFormats.ipv6 as RegExp;

/** RFC 5321, section 4.1.2, but for literals of addresses other than those of IPv4 and IPv6. */
export function isMailbox(text: string): boolean {
  const at = text.lastIndexOf('@');
  const [local, domain] = [text.slice(0, at), text.slice(at + 1)];
  if (at < 1 || !(ATOMS.test(local) || QUOTED.test(local))) return false;
  if (!domain.startsWith('[')) return DOMAIN.test(domain);
  const [, ipv6, ipv4] = ADDRESS.exec(domain) ?? [];
  return ipv6 === undefined ? IPV4.test(ipv4 ?? '') : IPV6.test(ipv6);
}

/** A name of labels by RFC 1123, section 2.1; its A-labels are not decoded. */
export const isHostname = (text: string): boolean =>
  /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/i.test(text);
