import type jsonata from 'jsonata';

export type Expression = ReturnType<typeof jsonata>;
export type KeepExpressions = typeof keepExpressions;

/**
 * Compiles each expression once, and keeps those that were evaluated last: at most 5 MB of heap. Compiled in a realm,
 * so it refers to nothing outside of itself; and a realm is that of one organization, so no organization displaces
 * another one's expressions.
 * @returns takes a source; throws what `compile` throws
 */
export function keepExpressions(compile: (source: string) => Expression): (source: string) => Expression {
  const MAX_CHARACTERS = 32_768;
  /** What an expression takes beside its syntax tree, in characters of a source. */
  const BASE_CHARACTERS = 512;

  /** The least recently used first. */
  const kept = new Map<string, Expression>();
  let characters = 0;

  function remove(source: string): void {
    if (kept.delete(source)) characters -= source.length + BASE_CHARACTERS;
  }

  return (source) => {
    if (source.length + BASE_CHARACTERS > MAX_CHARACTERS) return compile(source);
    const expression = kept.get(source) ?? compile(source);
    remove(source);
    kept.set(source, expression);
    characters += source.length + BASE_CHARACTERS;
    for (const oldest of kept.keys()) if (characters > MAX_CHARACTERS) remove(oldest);
    return expression;
  };
}
