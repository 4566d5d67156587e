import type { Format } from 'ajv';
import { fullFormats, type FormatName } from 'ajv-formats/dist/formats.js';
import { spend } from './budget.ts';
import { isDateTime, isDuration, isIsoDateTime, isIsoTime, isTime } from './date-time.ts';
import { isHostname, isMailbox } from './mailbox.ts';
import { isUri, isUriReference } from './uri.ts';

/** The most characters of a text that has the format. */
const MAX_LENGTH: Partial<Record<FormatName, number>> = {
  date: 10,
  // RFC 5321, 4.5.3.1: a local part of 64 octets, "@", a domain of 255
  email: 320,
  // RFC 1035, 2.3.4
  hostname: 253,
  ipv4: 15,
  ipv6: 45,
  uuid: 36,
  // as a pattern in a schema; V8 compares each name of a group with each
  regex: 2_000,
};

/** What a check costs, as measured: at once, and for each character. */
const UNITS: Partial<Record<FormatName, [number, number]>> = {
  regex: [70, 1 / 2],
};

const ownForms: Partial<Record<FormatName, (text: string) => boolean>> = {
  byte: isBase64,
  'date-time': isDateTime,
  duration: isDuration,
  email: isMailbox,
  hostname: isHostname,
  'iso-date-time': isIsoDateTime,
  'iso-time': isIsoTime,
  time: isTime,
  uri: isUri,
  'uri-reference': isUriReference,
  'uri-template': (text) => uriTemplate.test(text),
  url: isUrl,
  uuid: (text) => /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i.test(text),
};

/**
 * The formats of ajv-formats. The check of a text takes time linear in the text, and spends from the budget by it:
 * - A format whose standard limits its length has that limit here, too; a longer text is not read.
 * - A format without a limit has a form here that does not backtrack. Either it is a search for something forbidden of
 *   at most three characters; or it is anchored, and what follows a repetition cannot begin with what is repeated, so
 *   that no character has a second way to be read.
 */
export const formats: Record<string, Format> = Object.fromEntries(
  (Object.keys(fullFormats) as FormatName[]).map((name) => [name, withCost(name)]),
);

function withCost(name: FormatName): Format {
  const format = fullFormats[name];
  if (typeof format === 'object' && !(format instanceof RegExp) && format.type === 'number') return format;
  const check = ownForms[name] ?? (typeof format === 'object' && 'validate' in format ? format.validate : format);
  if (check === true || typeof check === 'string') return true;
  const test = check instanceof RegExp ? (text: string) => check.test(text) : (check as (text: string) => boolean);
  const maxLength = MAX_LENGTH[name] ?? Infinity;
  const [base, perCharacter] = UNITS[name] ?? [4, 1 / 6];
  return (text: string) => {
    if (text.length > maxLength) return false;
    spend(base + perCharacter * text.length);
    return test(text);
  };
}

/** RFC 4648, section 4: with padding, without line breaks; the unused bits of the last character are not looked at. */
function isBase64(text: string): boolean {
  return text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text);
}

/** RFC 6570, section 2, with the apostrophe of its erratum 6937. */
const URI_TEMPLATE = /^(?:[^\x00-\x20"<>%\\^`{|}\x7f-\x9f]|%[0-9a-f]{2}|\{[+#./;?&=,!@|]?VARIABLE(?:,VARIABLE)*\})*$/;
const VARIABLE = '(?:[a-z0-9_]|%[0-9a-f]{2})(?:\\.?(?:[a-z0-9_]|%[0-9a-f]{2}))*(?::[1-9][0-9]{0,3}|\\*)?';
const uriTemplate = new RegExp(URI_TEMPLATE.source.replaceAll('VARIABLE', VARIABLE), 'i');

const PUBLIC_IPV4_AND_PORT =
  /^(?!(?:10|127)(?:\.\d{1,3}){3})(?!(?:169\.254|192\.168)(?:\.\d{1,3}){2})(?!172\.(?:1[6-9]|2\d|3[0-1])(?:\.\d{1,3}){2})(?:[1-9]\d?|1\d\d|2[01]\d|22[0-3])(?:\.(?:1?\d{1,2}|2[0-4]\d|25[0-5])){2}(?:\.(?:[1-9]\d?|1\d\d|2[0-4]\d|25[0-4]))(?::\d{2,5})?$/;

/**
 * An absolute URL of a public host (https://gist.github.com/dperini/729294). Any "@" may end the user information,
 * which may have "/" in it, so in each part between two "/" the text after the last "@" may be the host.
 */
function isUrl(text: string): boolean {
  const scheme = /^(?:https?|ftp):\/\//iu.exec(text)?.[0];
  if (scheme === undefined || /\s/.test(text)) return false;
  return text
    .slice(scheme.length)
    .split('/')
    .some((part, i) => {
      const at = part.lastIndexOf('@');
      if (at < 0 ? i > 0 : i === 0 && at === 0) return false;
      spend(5);
      const host = part.slice(at + 1);
      return PUBLIC_IPV4_AND_PORT.test(host) || isDomainAndPort(host);
    });
}

/** Two or more labels of letters, digits and single hyphens; the last of letters alone. */
function isDomainAndPort(text: string): boolean {
  const [domain, port, ...more] = text.split(':', 3) as [string, ...string[]];
  return (
    more.length === 0 &&
    (port === undefined || /^\d{2,5}$/.test(port)) &&
    !/[^a-z0-9\-.\u{a1}-\u{ffff}]|[-.][-.]|^[-.]|[-.]$/iu.test(domain) &&
    /^[a-z\u{a1}-\u{ffff}]{2,}$/iu.test(domain.slice(domain.lastIndexOf('.') + 1)) &&
    domain.includes('.')
  );
}
