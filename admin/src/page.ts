/** One page of a list and the cursor of the next page, which is absent after the last page. */
export interface Page<T, C> {
  rows: T[];
  next?: C;
}

/**
 * @param list fetches up to `size` rows after a cursor
 * @param cursorOf the cursor of the page that follows this row
 */
export async function pageOf<T, C>(
  size: number,
  from: C,
  list: (size: number, from: C) => Promise<T[]>,
  cursorOf: (row: T) => C,
): Promise<Page<T, C>> {
  const rows = await list(size, from);
  const last = rows.at(-1);
  if (!last || rows.length < size) return { rows };
  const next = cursorOf(last);
  return (await list(1, next)).length > 0 ? { rows, next } : { rows };
}

/** Fetches all rows, page by page. */
export async function allOf<T, C>(
  size: number,
  from: C,
  list: (size: number, from: C) => Promise<T[]>,
  cursorOf: (row: T) => C,
): Promise<T[]> {
  const { rows, next } = await pageOf(size, from, list, cursorOf);
  return next === undefined ? rows : [...rows, ...(await allOf(size, next, list, cursorOf))];
}
