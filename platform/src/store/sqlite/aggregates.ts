import { ENTRIES_A_TURN, LOOK, DOCUMENT, STATEMENT, type Turns } from '../turns.ts';
import { isList } from './choose-index.ts';
import type { Layout } from './layout.ts';
import { isFound, UNKNOWN } from './read-cost.ts';
import type { Rows } from './rows.ts';
import { bind, fromSql, shapeOf, type Sql } from './sql.ts';
import { LIMIT_VALUE } from './statements.ts';

type Filter = Readonly<Record<string, unknown>>;

/** So many documents are counted or added up at once; where there are more, all are in turn. */
const FEW = 1_000;
/** Of a longer list of values, so many are looked up in one turn. */
const VALUES_A_TURN = ENTRIES_A_TURN / (LOOK + DOCUMENT);

/** Counts documents and adds up their fields. Makes the statements of each shape once. */
export function makeAggregates(rows: Rows) {
  const aggregates = new Map<string, Sql>();

  /** @param limit goes no further */
  function aggregate(value: string, layout: Layout, filter: Filter, limit: number): { total: number; passed: number } {
    const shape = `${value} ${layout.name} ${shapeOf(filter)}`;
    let sql = aggregates.get(shape);
    if (sql === undefined) {
      const { text, values } = fromSql(layout, filter);
      const counted = `(SELECT ${value} AS value ${text} LIMIT ${LIMIT_VALUE}) AS counted`;
      aggregates.set(shape, (sql = { text: `SELECT coalesce(sum(value), 0), count(*) FROM ${counted}`, values }));
    }
    const [total, passed] = rows(sql.text, [...bind(sql.values, filter), limit])[0]!;
    return { total: total as number, passed: passed as number };
  }

  async function all(value: string, layout: Layout, filter: Filter, most: number, turns: Turns): Promise<number> {
    const few = await turns.inTurn(
      () => aggregate(value, layout, filter, Math.min(most, FEW + 1)),
      isFound(layout, filter) ? STATEMENT + VALUES_A_TURN * LOOK + FEW : UNKNOWN,
      ({ passed }) => STATEMENT + passed,
    );
    if (few.passed <= FEW || few.passed === most) return few.total;
    return (await turns.inTurn(() => aggregate(value, layout, filter, most === Infinity ? -1 : most))).total;
  }

  return {
    count: (layout: Layout, filter: Filter, limit: number | undefined, turns: Turns): Promise<number> =>
      all('1', layout, filter, limit ?? Infinity, turns),
    async sum(layout: Layout, filter: Filter, field: string, turns: Turns): Promise<number> {
      let sum = 0;
      for (const part of shorter(filter)) sum += await all(`"${field}"`, layout, part, Infinity, turns);
      return sum;
    },
  };
}

/** Filters that together find what the filter finds, none with a long list of values. */
function* shorter(filter: Filter): Generator<Filter> {
  const long = Object.keys(filter).find(
    (field) => isList(filter, field) && valuesOf(filter, field).length > VALUES_A_TURN,
  );
  if (long === undefined) return yield filter;
  const values = [...new Set(valuesOf(filter, long))];
  for (let from = 0; from < values.length; from += VALUES_A_TURN)
    yield { ...filter, [long]: { in: values.slice(from, from + VALUES_A_TURN) } };
}

const valuesOf = (filter: Filter, field: string): readonly unknown[] =>
  (filter[field] as { in: readonly unknown[] }).in;
