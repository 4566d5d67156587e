export type MakeJsonText = typeof makeJsonText;

/**
 * Writes outputs of expressions as JSON. Compiled in their realms, so it refers to nothing outside of itself.
 * @param given.isFunction tells functions of the language, which may be objects, from data
 * @param given.fail throws what ends the run with this message
 * @param given.refuse throws what ends the run because of what is at a place of its output: a JSON list of names
 */
export function makeJsonText({
  byteLength,
  isFunction,
  fail,
  refuse,
}: {
  byteLength(text: string): number;
  isFunction(value: unknown): boolean;
  fail(message: string): never;
  refuse(place: string, message: string): never;
}): (output: unknown, maxBytes: number) => string {
  const MAX_LEVELS = 64;

  /**
   * JSON text of at most `maxBytes`. Writing stops at the limit, because an output that holds one array many times is
   * small in memory and huge as text.
   */
  return (output, maxBytes) => {
    const parts: string[] = [];
    let bytes = 0;
    /** By level: the name or the index of the member that is written. */
    const names: (string | number)[] = [];
    const refuseAt = (level: number, message: string): never => refuse(JSON.stringify(names.slice(0, level)), message);
    write(output, 0);
    return parts.join('');

    function add(text: string): void {
      bytes += text.length > maxBytes ? text.length : byteLength(text);
      if (bytes > maxBytes) fail(`The output is larger than ${maxBytes} bytes`);
      parts.push(text);
    }

    function write(value: unknown, level: number): void {
      if (value === null || typeof value === 'boolean') return add(String(value));
      if (typeof value === 'number')
        return Number.isFinite(value) ? add(String(value)) : refuseAt(level, 'The number is not a finite number');
      if (typeof value === 'string') return add(value.length > maxBytes ? value : JSON.stringify(value));
      if (typeof value !== 'object' || isFunction(value))
        return fail('The output holds something that is not JSON, such as a function');
      if (level === MAX_LEVELS) return refuseAt(level, `The value is nested deeper than ${MAX_LEVELS} levels`);
      if (Array.isArray(value)) {
        for (let i = 0; i < value.length; i++) {
          add(i === 0 ? '[' : ',');
          names[level] = i;
          write(value[i] === undefined ? null : value[i], level + 1);
        }
        return add(value.length === 0 ? '[]' : ']');
      }
      const members = Object.entries(value).filter(([, member]) => member !== undefined);
      members.forEach(([name, member], i) => {
        add(`${i === 0 ? '{' : ','}${JSON.stringify(name)}:`);
        names[level] = name;
        write(member, level + 1);
      });
      add(members.length === 0 ? '{}' : '}');
    }
  };
}
