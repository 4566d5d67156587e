/**
 * JSON text in which equal values are equal texts (RFC 8785: members sorted by UTF-16 code units, no spaces): for hashes and comparisons.
 * @param value what JSON.parse gives; members that are undefined are left out, as JSON.stringify does
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  members.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`).join(',')}}`;
}
