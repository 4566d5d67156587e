import type jsonata from 'jsonata';

export type Expression = ReturnType<typeof jsonata>;
export interface Compiled {
  expression: Expression;
  /** About how much heap its syntax tree takes, which can be a thousand times as much as its source. */
  treeBytes: number;
}
export type KeepExpressions = typeof keepExpressions;

/**
 * Compiles each expression once, and keeps those that were evaluated last: at most 5 MB of heap. Compiled in a realm,
 * so it refers to nothing outside of itself; and a realm is that of one organization, so no organization displaces
 * another one's expressions.
 * @returns takes a source; throws what `compile` throws
 */
export function keepExpressions(compile: (source: string) => Compiled): (source: string) => Expression {
  const MAX_BYTES = 5_242_880;
  /** What an expression takes beside its syntax tree, and at most for each character, regular expressions included. */
  const BASE_BYTES = 81_920;
  const BYTES_PER_CHARACTER = 160;

  /** The least recently used first. */
  const kept = new Map<string, { expression: Expression; bytes: number }>();
  let bytes = 0;

  function remove(source: string): void {
    bytes -= kept.get(source)?.bytes ?? 0;
    kept.delete(source);
  }

  function compiled(source: string): { expression: Expression; bytes: number } {
    const { expression, treeBytes } = compile(source);
    return { expression, bytes: BASE_BYTES + Math.max(treeBytes, source.length * BYTES_PER_CHARACTER) };
  }

  return (source) => {
    const one = kept.get(source) ?? compiled(source);
    if (one.bytes > MAX_BYTES) return one.expression;
    remove(source);
    kept.set(source, one);
    bytes += one.bytes;
    for (const oldest of kept.keys()) if (bytes > MAX_BYTES) remove(oldest);
    return one.expression;
  };
}
