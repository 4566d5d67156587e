import { strict as assert } from 'node:assert';
import { compileSchema, type CompiledSchema } from 'platform/json-schema/schema.ts';
import type { Violation } from 'platform/core/errors.ts';
import { parseJson } from 'platform/core/parse-json.ts';
import { limitsOf, priceOf, type Definition, type Limits, type Price } from './rules.ts';
import type { Definitions } from './store.ts';

/** A version ready to run: definition parsed, schemas compiled, defaults applied. */
export interface LoadedVersion {
  agent: string;
  version: number;
  runtime: Definition['runtime'];
  limits: Limits;
  price: Price;
  /** Violations of the argument schema; their paths start with /args. */
  checkArgs(args: unknown): Violation[];
  /** Violations of the output schema by a JSON text. */
  checkOutput(outputText: string): Violation[];
}

export type LoadVersion = (organizationId: string, versionId: string) => Promise<LoadedVersion>;

/**
 * Loads versions by `_id` and caches the `capacity` most recently used. A cached version is never stale, because
 * versions are immutable.
 */
export function makeVersionLoader(definitions: Definitions, capacity = 500): LoadVersion {
  const cache = new Map<string, LoadedVersion>();
  return async (organizationId, versionId) => {
    const key = `${organizationId} ${versionId}`;
    const version = cache.get(key) ?? (await load(definitions, organizationId, versionId));
    cache.delete(key);
    cache.set(key, version);
    for (const oldest of cache.keys()) {
      if (cache.size <= capacity) break;
      cache.delete(oldest);
    }
    return version;
  };
}

async function load(definitions: Definitions, organizationId: string, versionId: string): Promise<LoadedVersion> {
  const [record] = await definitions.versionsByIds(organizationId, [versionId]);
  assert.ok(record, `published version ${versionId} is missing`);
  const definition = parseJson(record.definition) as Definition;
  const argumentsSchema = compileOptional(definition.argumentsSchema);
  const outputSchema = compileOptional(definition.outputSchema);
  return {
    agent: record.agent,
    version: record.version,
    runtime: definition.runtime,
    limits: limitsOf(definition),
    price: priceOf(definition),
    checkArgs: (value) => (argumentsSchema ? argumentsSchema.validate(value, '/args') : checkNoArgs(value)),
    checkOutput: (text) => outputSchema?.validate(parseJson(text)) ?? [],
  };
}

const compileOptional = (schema?: Record<string, unknown>): CompiledSchema | undefined =>
  schema && compileSchema(JSON.stringify(schema));

function checkNoArgs(value: unknown): Violation[] {
  const isEmpty =
    value === null || (typeof value === 'object' && !Array.isArray(value) && Object.keys(value).length === 0);
  return isEmpty ? [] : [{ path: '/args', message: 'must be {} or null, as this agent takes no arguments' }];
}
