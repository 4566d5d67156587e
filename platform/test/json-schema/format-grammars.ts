/**
 * The grammars of the standards, rule by rule, as one regular expression for each format. They backtrack, so they are
 * only for short texts.
 */
const DIGIT = '[0-9]';
const HEX = '[0-9A-Fa-f]';
const ALPHA = '[A-Za-z]';

/** RFC 3339, section 5.6. */
const HOUR = '(?:[01][0-9]|2[0-3])';
const MINUTE = '[0-5][0-9]';
const SECOND = '(?:[0-5][0-9]|60)';
const OFFSET = `(?:[Zz]|[+-]${HOUR}:${MINUTE})`;
const PARTIAL_TIME = `${HOUR}:${MINUTE}:${SECOND}(?:\\.${DIGIT}+)?`;
const DATE = `${DIGIT}{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])`;
const ISO_OFFSET = `(?:[Zz]|[+-]${HOUR}(?::?${MINUTE})?)?`;

/** RFC 3339, appendix A, with any unit left out. */
const unit = (letter: string): string => `${DIGIT}+${letter}`;
const SECONDS = unit('S');
const MINUTES = `${unit('M')}(?:${SECONDS})?`;
const HOURS = `${unit('H')}(?:${MINUTES}|${SECONDS})?`;
const DURATION_TIME = `T(?:${HOURS}|${MINUTES}|${SECONDS})`;
const DAYS = unit('D');
const MONTHS = `${unit('M')}(?:${DAYS})?`;
const YEARS = `${unit('Y')}(?:${MONTHS}|${DAYS})?`;
const DURATION = `P(?:(?:${DAYS}|${MONTHS}|${YEARS})(?:${DURATION_TIME})?|${DURATION_TIME}|${unit('W')})`;

/** RFC 3986, appendix A. */
const UNRESERVED = `[A-Za-z0-9._~-]`;
const ESCAPED = `%${HEX}${HEX}`;
const SUB_DELIMITER = `[!$&'()*+,;=]`;
const PCHAR = `(?:${UNRESERVED}|${ESCAPED}|${SUB_DELIMITER}|[:@])`;
const OCTET = '(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9][0-9]|[0-9])';
const IPV4 = `${OCTET}(?:\\.${OCTET}){3}`;
const H16 = `${HEX}{1,4}`;
const LS32 = `(?:${H16}:${H16}|${IPV4})`;
const IPV6 = `(?:${[
  `(?:${H16}:){6}${LS32}`,
  `::(?:${H16}:){5}${LS32}`,
  `(?:${H16})?::(?:${H16}:){4}${LS32}`,
  `(?:(?:${H16}:){0,1}${H16})?::(?:${H16}:){3}${LS32}`,
  `(?:(?:${H16}:){0,2}${H16})?::(?:${H16}:){2}${LS32}`,
  `(?:(?:${H16}:){0,3}${H16})?::${H16}:${LS32}`,
  `(?:(?:${H16}:){0,4}${H16})?::${LS32}`,
  `(?:(?:${H16}:){0,5}${H16})?::${H16}`,
  `(?:(?:${H16}:){0,6}${H16})?::`,
].join('|')})`;
const FUTURE = `[Vv]${HEX}+\\.(?:${UNRESERVED}|${SUB_DELIMITER}|:)+`;
const HOST = `(?:\\[(?:${IPV6}|${FUTURE})\\]|(?:${UNRESERVED}|${ESCAPED}|${SUB_DELIMITER})*)`;
const USER = `(?:${UNRESERVED}|${ESCAPED}|${SUB_DELIMITER}|:)*@`;
const AUTHORITY = `(?:${USER})?${HOST}(?::${DIGIT}*)?`;
const SEGMENTS = `(?:/${PCHAR}*)*`;
const ABSOLUTE = `/(?:${PCHAR}+${SEGMENTS})?`;
const NO_COLON = `(?:${UNRESERVED}|${ESCAPED}|${SUB_DELIMITER}|@)+`;
const QUERY = `(?:\\?(?:${PCHAR}|[/?])*)?(?:#(?:${PCHAR}|[/?])*)?`;
const URI = `${ALPHA}[A-Za-z0-9+.-]*:(?://${AUTHORITY}${SEGMENTS}|${ABSOLUTE}|${PCHAR}+${SEGMENTS}|)${QUERY}`;
const RELATIVE = `(?://${AUTHORITY}${SEGMENTS}|${ABSOLUTE}|${NO_COLON}${SEGMENTS}|)${QUERY}`;

/** RFC 6570, section 2, with erratum 6937. */
const LITERAL = `(?:[\\x21\\x23\\x24\\x26-\\x3b\\x3d\\x3f-\\x5b\\x5d\\x5f\\x61-\\x7a\\x7e\\u{a0}-\\u{10ffff}]|${ESCAPED})`;
const VARCHAR = `(?:[A-Za-z0-9_]|${ESCAPED})`;
const VARSPEC = `${VARCHAR}(?:\\.?${VARCHAR})*(?::[1-9][0-9]{0,3}|\\*)?`;
const TEMPLATE = `(?:${LITERAL}|\\{[+#./;?&=,!@|]?${VARSPEC}(?:,${VARSPEC})*\\})*`;

/** RFC 5321, section 4.1.2, and RFC 1123, section 2.1. */
const ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";
const QUOTED = '"(?:[\\x20\\x21\\x23-\\x5b\\x5d-\\x7e]|\\\\[\\x20-\\x7e])*"';
const SUB_DOMAIN = '[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?';
const DOMAIN = `${SUB_DOMAIN}(?:\\.${SUB_DOMAIN})*`;
const MAILBOX = `(?:${ATOM}(?:\\.${ATOM})*|${QUOTED})@(?:${DOMAIN}|\\[(?:${IPV4}|[Ii][Pp][Vv]6:${IPV6})\\])`;
const LABEL = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?';

/** The day of the month, and the leap second, which no grammar tells. */
const isDay = (text: string): boolean => {
  const [year, month, day] = text.slice(0, 10).split('-').map(Number) as [number, number, number];
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  return date.getUTCDate() === day;
};
function isSecond(text: string): boolean {
  const [, time, offset = 'Z'] = /(\d\d:\d\d:60)(?:\.\d+)?([+-].*|[Zz])?$/.exec(text) ?? [];
  if (time === undefined) return true;
  const utc = new Date(`2000-01-02T${time.slice(0, 5)}Z`);
  const [hours, minutes] = [Number(offset.slice(1, 3)), Number(offset.slice(3).replace(':', ''))];
  if (/^[+-]/.test(offset)) utc.setUTCMinutes(utc.getUTCMinutes() - Number(`${offset[0]}1`) * (60 * hours + minutes));
  return utc.toISOString().slice(11, 16) === '23:59';
}

function grammar(source: string, ...rules: ((text: string) => boolean)[]): (text: string) => boolean {
  const form = new RegExp(`^(?:${source})$`, 'u');
  return (text) => form.test(text) && rules.every((holds) => holds(text));
}

export const GRAMMARS: Record<string, (text: string) => boolean> = {
  time: grammar(`${PARTIAL_TIME}${OFFSET}`, isSecond),
  'date-time': grammar(`${DATE}[Tt]${PARTIAL_TIME}${OFFSET}`, isDay, isSecond),
  'iso-time': grammar(`${PARTIAL_TIME}${ISO_OFFSET}`, isSecond),
  'iso-date-time': grammar(`${DATE}[Tt ]${PARTIAL_TIME}${ISO_OFFSET}`, isDay, isSecond),
  duration: grammar(DURATION),
  uri: grammar(URI),
  'uri-reference': grammar(`(?:${URI}|${RELATIVE})`),
  'uri-template': grammar(TEMPLATE),
  email: grammar(MAILBOX),
  hostname: grammar(`${LABEL}(?:\\.${LABEL})*`, ({ length }) => length <= 253),
  ipv4: grammar(IPV4),
  ipv6: grammar(IPV6),
  uuid: grammar(`${HEX}{8}(?:-${HEX}{4}){3}-${HEX}{12}`),
};
