import { makeSchemaCache } from 'platform/json-schema/cache.ts';
import { compileSchema, type CompiledSchema } from 'platform/json-schema/schema.ts';
import { CLASSES } from './schema-classes.ts';
import { many } from './schemas.ts';

// Prints as JSON what compiled schemas keep in memory. A process of its own, started with --expose-gc, because the heap
// of a test worker is large: to collect it some hundred times takes minutes.

export interface KeptMemory {
  /** By class, bytes: what the compiled schemas say, and what they keep. */
  estimated: Record<string, number>;
  measured: Record<string, number>;
  /** Of a cache that one organization fills while a neighbour has schemas in it. */
  cache: { maxBytes: number; keptBytes: number; hostileBytes: number; keepsNeighbour: boolean };
}

/** What is kept once for all schemas: code that became hot, pools of RE2. */
const ONCE_BYTES = 1_048_576;

/** Bytes of heap that what `make` returns keeps, beyond what is kept once. */
function heapOf(make: () => unknown): number {
  const heap = (): number => {
    // V8 keeps code that was compiled last for some collections.
    for (let i = 0; i < 6; i++) globalThis.gc!();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  const before = heap();
  const kept = make();
  const after = heap();
  if (kept === undefined) throw new Error('nothing was made');
  return after - before - ONCE_BYTES;
}

function measureClass(name: string): [estimated: number, measured: number] {
  const count = name === 'one rule' || name === 'a record' ? 60 : 3;
  const inputs = many(count, (k): [string, unknown] => {
    const [schema, value] = CLASSES[name]!(k + 1);
    return [JSON.stringify(schema), value];
  });
  let estimated = 0;
  const measured = heapOf(() =>
    inputs.map(([text, value]) => {
      const compiled = compileSchema(text);
      for (let i = 0; i < 10; i++) compiled.validate(value);
      estimated += compiled.bytes;
      return compiled;
    }),
  );
  return [estimated, measured];
}

function measureCache(): KeptMemory['cache'] {
  const maxBytes = 6 * 1024 * 1024;
  const cache = makeSchemaCache(maxBytes);
  const small = many(10, (i) => JSON.stringify(CLASSES['a record']!(i)[0]));
  const before = small.map((text) => cache.compile('neighbour', text));
  const hostile = Object.values(CLASSES).map((make) => make(0));
  const keptBytes = heapOf(() => {
    for (const [schema, value] of hostile) cache.compile('hostile', JSON.stringify(schema)).validate(value);
    return cache;
  });
  const hostileBytes = hostile.reduce((sum, [schema]) => sum + compileSchema(JSON.stringify(schema)).bytes, 0);
  const after: CompiledSchema[] = small.map((text) => cache.compile('neighbour', text));
  return { maxBytes, keptBytes, hostileBytes, keepsNeighbour: after.every((compiled, i) => compiled === before[i]) };
}

const kept: KeptMemory = { estimated: {}, measured: {}, cache: measureCache() };
for (const name of Object.keys(CLASSES)) [kept.estimated[name], kept.measured[name]] = measureClass(name);
process.stdout.write(JSON.stringify(kept));
