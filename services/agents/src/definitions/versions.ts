import { strict as assert } from 'node:assert';
import { compileSchema, type CompiledSchema } from 'platform/json-schema/schema.ts';
import type { Violation } from 'platform/core/errors.ts';
import { limitsOf, priceOf, type Definition, type Limits, type Price } from './rules.ts';
import type { Definitions } from './store.ts';

/** A version made ready to run. */
export interface LoadedVersion {
  agent: string;
  version: number;
  runtime: Definition['runtime'];
  limits: Limits;
  price: Price;
  /** Paths start with /args. */
  checkArgs(args: unknown): Violation[];
  checkOutput(outputText: string): Violation[];
}

export type LoadVersion = (organizationId: string, versionId: string) => Promise<LoadedVersion>;

/** Loads versions by `_id` and remembers the last used ones: a version never changes, so what is remembered is never out of date. */
export function makeVersionLoader(definitions: Definitions, capacity = 500): LoadVersion {
  const loaded = new Map<string, LoadedVersion>();
  return async (organizationId, versionId) => {
    const key = `${organizationId} ${versionId}`;
    const version = loaded.get(key) ?? (await load(definitions, organizationId, versionId));
    loaded.delete(key);
    loaded.set(key, version);
    for (const oldest of loaded.keys()) {
      if (loaded.size <= capacity) break;
      loaded.delete(oldest);
    }
    return version;
  };
}

async function load(definitions: Definitions, organizationId: string, versionId: string): Promise<LoadedVersion> {
  const [stored] = await definitions.findVersionsById(organizationId, [versionId]);
  assert.ok(stored, `published version ${versionId} is missing`);
  const definition = JSON.parse(stored.definition) as Definition;
  const args = compiled(definition.argumentsSchema);
  const output = compiled(definition.outputSchema);
  return {
    agent: stored.agent,
    version: stored.version,
    runtime: definition.runtime,
    limits: limitsOf(definition),
    price: priceOf(definition),
    checkArgs: (value) => (args ? args.validate(value, '/args') : checkNoArgs(value)),
    checkOutput: (text) => (output ? output.validate(JSON.parse(text)) : []),
  };
}

const compiled = (schema?: Record<string, unknown>): CompiledSchema | undefined =>
  schema && compileSchema(JSON.stringify(schema));

function checkNoArgs(value: unknown): Violation[] {
  const none =
    value === null || (typeof value === 'object' && !Array.isArray(value) && Object.keys(value).length === 0);
  return none ? [] : [{ path: '/args', message: 'must be {} or null, as this agent takes no arguments' }];
}
