import type { ValidateFunction } from 'ajv';
import { parseJson } from '../core/parse-json.ts';
import { CHECK_COST, newAjv } from './compiler.ts';
import { metaSchemaUri, type Dialect } from './dialects.ts';
import { lintSchema } from './lint.ts';
import { patternsOfSchema } from './patterns.ts';

const compiled = new Map<Dialect, ValidateFunction>();

/**
 * Checks a schema by the meta-schema of its dialect. It is compiled as what others refer to it for, when it is first
 * needed, which a process that checks no schema of this dialect never does.
 */
export function metaSchemaOf(dialect: Dialect): ValidateFunction {
  const known = compiled.get(dialect);
  if (known) return known;
  const patterns = patternsOfSchema();
  const { linted } = lintSchema({ $ref: metaSchemaUri(dialect) }, { dialect, patterns, requireSchema: () => {} });
  const made = newAjv(dialect, { validateFormats: false, inlineRefs: true }, patterns).compile(withoutCosts(linted));
  compiled.set(dialect, made);
  return made;
}

/** A schema is bounded by its size, and most of them are checked once. */
const withoutCosts = (schema: object): object =>
  parseJson(JSON.stringify(schema, (name, value: unknown) => (name === CHECK_COST ? undefined : value))) as object;
