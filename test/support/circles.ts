/** Groups of files that import each other in a circle (Tarjan's strongly connected components of two or more). */
export function circles(imports: ReadonlyMap<string, readonly string[]>): string[][] {
  const found: string[][] = [];
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const open: string[] = [];

  function visit(file: string): void {
    order.set(file, order.size);
    lowest.set(file, order.get(file)!);
    open.push(file);
    for (const target of imports.get(file) ?? []) {
      if (!order.has(target)) visit(target);
      if (open.includes(target)) lowest.set(file, Math.min(lowest.get(file)!, lowest.get(target)!));
    }
    if (lowest.get(file) !== order.get(file)) return;
    const circle = open.splice(open.indexOf(file));
    if (circle.length > 1) found.push(circle);
  }

  for (const file of imports.keys()) if (!order.has(file)) visit(file);
  return found;
}
