import type { Ajv, ValidateFunction } from 'ajv';
import { compileSchema, SchemaEnv } from 'ajv/dist/compile/index.js';
import type { Json, Subschema } from './subschema.ts';

/** The URI by which ajv knows the schema. */
const ROOT = 'root';

/**
 * The definitions that the subschemas refer to, at any distance: each after those that it refers to, but where
 * references loop.
 * @param partsOf the subschemas in one, and the one that it refers to
 */
export function definitionsInOrder(from: readonly Subschema[], partsOf: (sub: Subschema) => Subschema[]): number[] {
  const order: number[] = [];
  const seen = new Set<Subschema>();
  const open = from.map((sub) => ({ sub, isDone: false })).reverse();
  while (open.length > 0) {
    const { sub, isDone } = open.pop()!;
    if (isDone) order.push(sub.definition!);
    if (isDone || seen.has(sub)) continue;
    seen.add(sub);
    if (sub.definition !== undefined) open.push({ sub, isDone: true });
    for (const part of partsOf(sub)) open.push({ sub: part, isDone: false });
  }
  return order;
}

/**
 * ajv compiles what a reference leads to in the middle of what refers to it. How long a chain of them the stack has
 * room for depends on which of ajv's functions V8 has optimized: in a new process on 150, later on 400. So each is
 * compiled by itself.
 */
export function compileInOrder(ajv: Ajv, schema: Json, definitions: readonly number[]): ValidateFunction {
  const root = ajv.addSchema(schema, ROOT).schemas[ROOT] as SchemaEnv;
  const $defs = schema['$defs'] as Record<number, Json | boolean>;
  const envs = definitions.flatMap((definition) => {
    const part = $defs[definition]!;
    if (typeof part === 'boolean') return [];
    return [(root.refs[`${ROOT}#/$defs/${definition}`] = new SchemaEnv({ schema: part, root, baseId: root.baseId }))];
  });
  for (const env of envs) compileSchema.call(ajv, env);
  return ajv.compile(schema);
}
