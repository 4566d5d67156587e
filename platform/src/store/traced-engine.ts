import { inSpan, isSampled, isTracing } from '../telemetry/traces.ts';
import type { Engine } from './engine.ts';
import type { Op } from './store.ts';

/** The engine, with a span around each command of a traced request: what is done to which collection, never a value. */
export function tracedEngine(engine: Engine): Engine {
  if (!isTracing()) return engine;
  const { system } = engine;
  const traced = <T>(operation: string, { name }: { name: string }, work: () => Promise<T>): Promise<T> =>
    inSpan(
      'client',
      `${operation} ${name}`,
      () => ({ 'db.system.name': system, 'db.operation.name': operation, 'db.collection.name': name }),
      work,
    );
  return {
    ...engine,
    find: (...read) => traced('find', read[0], () => engine.find(...read)),
    count: (...read) => traced('count', read[0], () => engine.count(...read)),
    sum: (...read) => traced('sum', read[0], () => engine.sum(...read)),
    async apply(ops) {
      if (!isSampled()) return engine.apply(ops);
      const summary = `apply ${collectionsOf(ops).join(' ')}`;
      const attributes = {
        'db.system.name': system,
        'db.operation.name': 'apply',
        'db.operation.batch.size': ops.length,
        'db.query.summary': summary,
      };
      return inSpan(
        'client',
        summary,
        () => attributes,
        () => engine.apply(ops),
      );
    },
  };
}

const collectionsOf = (ops: readonly Op[]): string[] => [...new Set(ops.map(({ collection }) => collection.name))];
