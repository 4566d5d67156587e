const SIZE = 1 << 20;

/** As many items as fit into `size` bytes, separated by commas. */
function filled(open: string, close: string, item: (i: number) => string, size: number): string {
  const items: string[] = [];
  for (let i = 0, length = open.length + close.length; ; i++) {
    const next = item(i);
    length += Buffer.byteLength(next) + 1;
    if (length > size) return open + items.join(',') + close;
    items.push(next);
  }
}
const name = (i: number): string => i.toString(36);
/** Names in an order without a pattern: a permutation of 0 to 2^20 - 1. */
const scattered = (i: number): string => name((i * 0x9e375) & 0xf_ffff);

/** Legal bodies of about `size` bytes, each of which is costly to read for another reason. */
export const costlyBodies = (size = SIZE): Record<string, string> =>
  Object.fromEntries(Object.entries(costlyValues(size - 12)).map(([name, json]) => [name, `{"content":${json}}`]));

const costlyValues = (size: number): Record<string, string> => ({
  'one string': JSON.stringify('x'.repeat(size - 2)),
  'one string of two-byte characters': JSON.stringify('é'.repeat(size / 2 - 1)),
  'one string of escapes': `"${'\\u0061'.repeat(size / 6 - 1)}"`,
  'one string of escaped control characters': `"${'\\u0001'.repeat(size / 6 - 1)}"`,
  'one string of escaped surrogate pairs': `"${'\\ud83d\\ude00'.repeat(size / 12 - 1)}"`,
  'one string of escaped quotes': `"${'\\"'.repeat(size / 2 - 1)}"`,
  'short strings': filled('[', ']', () => '""', size),
  'short strings with an escape': filled('[', ']', () => '"\\n"', size),
  members: filled('{', '}', (i) => `"${name(i)}":1`, size),
  'members in no order': filled('{', '}', (i) => `"${scattered(i)}":1`, size),
  'members with escaped names': filled('{', '}', (i) => `"\\u006${1 + (i % 9)}${name(i)}":1`, size),
  'members with integers as names': filled('{', '}', (i) => `"${i}":1`, size),
  'members with long common beginnings': filled('{', '}', (i) => `"${'n'.repeat(200)}${name(i)}":1`, size),
  'objects of eight members': filled('[', ']', () => `{${Array.from('abcdefgh', (c) => `"${c}":1`).join(',')}}`, size),
  'objects of nine members': filled('[', ']', () => `{${Array.from('abcdefghi', (c) => `"${c}":1`).join(',')}}`, size),
  'objects of one member': filled('[', ']', () => '{"a":1}', size),
  'objects of one member, each another': filled('[', ']', (i) => `{"${name(i)}":1}`, size),
  'empty objects': filled('[', ']', () => '{}', size),
  'deep arrays': filled('[', ']', () => '['.repeat(62) + ']'.repeat(62), size),
  'deep objects': filled('[', ']', () => `${'{"a":'.repeat(62)}1${'}'.repeat(62)}`, size),
  'members at the deepest level': `${'{"a":'.repeat(62)}${filled('{', '}', (i) => `"${name(i)}":1`, size - 400)}${'}'.repeat(62)}`,
  digits: filled('[', ']', () => '1', size),
  integers: filled('[', ']', String, size),
  exponents: filled('[', ']', (i) => `1e${i % 16}`, size),
  'large exponents': filled('[', ']', (i) => `1e${21 + (i % 280)}`, size),
  'numbers at a limit': filled('[', ']', () => '9007199254740991.0', size),
  'numbers at the largest': filled('[', ']', () => '1.7976931348623157e308', size),
  'one number': `0.${'1'.repeat(size - 2)}`,
  'white space': `[${' \n'.repeat(size / 2 - 1)}]`,
  nulls: filled('[', ']', () => 'null', size),
});
