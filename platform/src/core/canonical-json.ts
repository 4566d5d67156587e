/**
 * JSON text for hashes and comparisons: equal values give equal texts (RFC 8785: members sorted by UTF-16 code units,
 * no spaces).
 * @param value a value as JSON.parse returns it; undefined members are left out, as by JSON.stringify
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  members.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`).join(',')}}`;
}
