export type MakeJsonText = typeof makeJsonText;

/**
 * Writes outputs as JSON. Also compiled in the realms of expressions, so it refers to nothing outside of itself.
 * @param given.isFunction tells functions of the language, which may be objects, from data
 * @param given.fail throws what ends the run with this message
 */
export function makeJsonText({
  byteLength,
  isFunction,
  fail,
}: {
  byteLength(text: string): number;
  isFunction(value: unknown): boolean;
  fail(message: string): never;
}): (output: unknown, maxBytes: number) => string {
  const MAX_LEVELS = 64;

  /**
   * JSON text of at most `maxBytes`. Writing stops at the limit, because an output that holds one array many times is
   * small in memory and huge as text.
   */
  return (output, maxBytes) => {
    const parts: string[] = [];
    let bytes = 0;
    write(output, 0);
    return parts.join('');

    function add(text: string): void {
      bytes += text.length > maxBytes ? text.length : byteLength(text);
      if (bytes > maxBytes) fail(`The output is larger than ${maxBytes} bytes`);
      parts.push(text);
    }

    function write(value: unknown, level: number): void {
      if (level > MAX_LEVELS) fail(`The output has more than ${MAX_LEVELS} levels`);
      if (value === null || typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value)))
        return add(String(value));
      if (typeof value === 'string') return add(value.length > maxBytes ? value : JSON.stringify(value));
      if (typeof value !== 'object' || isFunction(value))
        return fail('The output holds something that is not JSON, such as a function');
      if (Array.isArray(value)) {
        for (let i = 0; i < value.length; i++) {
          add(i === 0 ? '[' : ',');
          write(value[i] === undefined ? null : value[i], level + 1);
        }
        return add(value.length === 0 ? '[]' : ']');
      }
      const members = Object.entries(value).filter(([, member]) => member !== undefined);
      members.forEach(([name, member], i) => {
        add(`${i === 0 ? '{' : ','}${JSON.stringify(name)}:`);
        write(member, level + 1);
      });
      add(members.length === 0 ? '{}' : '}');
    }
  };
}
