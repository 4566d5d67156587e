/**
 * JSON text for hashes and comparisons: equal values give equal texts (RFC 8785: members sorted by UTF-16 code units,
 * no spaces).
 * @param value a value as JSON.parse returns it; undefined members are left out, as by JSON.stringify
 * @param beforeWork is told of each part of the work before it is done, in units of some 0.1 µs; what it throws ends it
 */
export function canonicalJson(value: unknown, beforeWork: (units: number) => void = () => {}): string {
  if (Array.isArray(value)) {
    beforeWork(2 + value.length);
    return `[${value.map((item) => canonicalJson(item, beforeWork)).join(',')}]`;
  }
  if (typeof value !== 'object' || value === null) {
    if (typeof value === 'string') beforeWork(1 + value.length / 16);
    return JSON.stringify(value) ?? 'null';
  }
  const members = value as Record<string, unknown>;
  const names = Object.keys(members);
  beforeWork(2 + names.length * (2 + Math.log2(1 + names.length) / 2));
  let text = '';
  for (const name of names.sort()) {
    const member = members[name];
    if (member === undefined) continue;
    beforeWork(name.length / 16);
    text += `${text === '' ? '' : ','}${JSON.stringify(name)}:${canonicalJson(member, beforeWork)}`;
  }
  return `{${text}}`;
}
