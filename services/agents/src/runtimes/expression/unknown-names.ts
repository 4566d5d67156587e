interface Node {
  type?: unknown;
  value?: unknown;
  position?: unknown;
  procedure?: unknown;
  lhs?: Node;
  arguments?: Node[];
  focus?: unknown;
  index?: unknown;
}

export type FindUnknownName = (nodes: Iterable<object>, functions: ReadonlySet<string>) => string | undefined;

/**
 * Finds a variable or function that nothing defines: JSONata would evaluate it to nothing. A name that is bound
 * anywhere in the expression counts as defined, so nothing sound is refused. The realm compiles the text of this
 * function, so it refers to nothing outside of itself.
 * @param nodes of the syntax tree
 * @param functions names of the built-in functions
 * @returns a sentence about the first one
 */
export function findUnknownName(nodes: Iterable<object>, functions: ReadonlySet<string>): string | undefined {
  // "$" is the context, "$$" all that the agent was given.
  const bound = new Set<unknown>(['', '$']);
  const called = new Set<unknown>();
  const used: Node[] = [];
  for (const node of nodes as Iterable<Node>) {
    if (node.type === 'bind') bound.add(node.lhs?.value);
    if (node.type === 'lambda') for (const parameter of node.arguments ?? []) bound.add(parameter.value);
    if (node.type === 'index') bound.add(node.value);
    for (const name of [node.focus, node.index]) if (typeof name === 'string') bound.add(name);
    if (node.type === 'function' || node.type === 'partial') called.add(node.procedure);
    if (node.type === 'variable') used.push(node);
  }
  const unknown = used
    .filter(({ value }) => !bound.has(value) && !functions.has(value as string))
    .sort((one, other) => Number(one.position) - Number(other.position))[0];
  if (unknown === undefined) return undefined;
  const name = String(unknown.value).slice(0, 100);
  return called.has(unknown)
    ? `$${name} is no function of JSONata, and the expression does not define it (at character ${unknown.position})`
    : `$${name} is a variable that the expression does not define (at character ${unknown.position})`;
}
