/** One page of a list, and where the next one begins: absent when there is none. */
export interface Page<T, C> {
  rows: T[];
  next?: C;
}

/** @param list rows after a cursor, as the services page. @param cursorOf where the page after this row begins */
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

/** All of them, page after page. */
export async function allOf<T, C>(
  size: number,
  from: C,
  list: (size: number, from: C) => Promise<T[]>,
  cursorOf: (row: T) => C,
): Promise<T[]> {
  const { rows, next } = await pageOf(size, from, list, cursorOf);
  return next === undefined ? rows : [...rows, ...(await allOf(size, next, list, cursorOf))];
}
