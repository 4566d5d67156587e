import { strict as assert } from 'node:assert';
import { fairCache } from 'platform/core/fair-cache.ts';
import type { FairScheduler } from 'platform/core/fair-scheduler.ts';
import { compileSchema, type CompiledSchema } from 'platform/json-schema/schema.ts';
import type { Violation } from 'platform/core/errors.ts';
import { parseJson } from 'platform/core/parse-json.ts';
import { limitsOf, priceOf, type Definition, type Limits, type Price } from './rules.ts';
import type { Tools } from '../tools/rules.ts';
import type { AgentVersionRecord, Definitions } from './store.ts';

/** A version ready to run: definition parsed, schemas compiled, defaults applied. */
export interface LoadedVersion {
  agent: string;
  version: number;
  runtime: Definition['runtime'];
  limits: Limits;
  tools: Tools | undefined;
  /** Whether its runs keep messages. */
  trace: boolean;
  price: Price;
  outputSchema: Definition['outputSchema'];
  /** Violations of the argument schema; their paths start with /args. */
  checkArgs(args: unknown): Promise<Violation[]>;
  /** Violations of the output schema by a JSON text. */
  checkOutput(outputText: string): Promise<Violation[]>;
}

export type LoadVersion = (organizationId: string, versionId: string) => Promise<LoadedVersion>;

/**
 * Loads versions by `_id` and caches those used last. A cached version is never stale, because versions are immutable.
 * @param schedule runs what may take long: compiling schemas and checking values by them
 * @param cacheBytes of heap, for the versions of all organizations
 */
export function makeVersionLoader(
  definitions: Definitions,
  { schedule, cacheBytes }: { schedule: FairScheduler; cacheBytes: number },
): LoadVersion {
  const cache = fairCache<LoadedVersion>(cacheBytes);
  return async (organizationId, versionId) => {
    const cached = cache.get(organizationId, versionId);
    if (cached) return cached;
    const [record] = await definitions.versionsByIds(organizationId, [versionId]);
    assert.ok(record, `published version ${versionId} is missing`);
    return schedule(organizationId, () => {
      const loadedMeanwhile = cache.get(organizationId, versionId);
      if (loadedMeanwhile) return loadedMeanwhile;
      const { version, bytes } = prepare(record, (work) => schedule(organizationId, work));
      cache.set(organizationId, versionId, version, bytes);
      return version;
    });
  };
}

function prepare(
  record: AgentVersionRecord,
  schedule: <T>(work: () => T) => Promise<T>,
): { version: LoadedVersion; bytes: number } {
  const definition = parseJson(record.definition) as Definition;
  const argumentsSchema = compileOptional(definition.argumentsSchema);
  const outputSchema = compileOptional(definition.outputSchema);
  const version: LoadedVersion = {
    agent: record.agent,
    version: record.version,
    runtime: definition.runtime,
    limits: limitsOf(definition),
    tools: definition.tools,
    trace: definition.trace ?? false,
    price: priceOf(definition),
    outputSchema: definition.outputSchema,
    checkArgs: (value) =>
      schedule(() => (argumentsSchema ? argumentsSchema.validate(value, '/args') : checkNoArgs(value))),
    async checkOutput(text) {
      if (!outputSchema) return [];
      const output = await schedule(() => parseJson(text));
      return schedule(() => outputSchema.validate(output));
    },
  };
  const { runtime, outputSchema: schema = {} } = definition;
  const bytes = 2_048 + 2 * JSON.stringify({ runtime, schema }).length;
  return { version, bytes: bytes + (argumentsSchema?.bytes ?? 0) + (outputSchema?.bytes ?? 0) };
}

const compileOptional = (schema?: Record<string, unknown>): CompiledSchema | undefined =>
  schema && compileSchema(JSON.stringify(schema));

function checkNoArgs(value: unknown): Violation[] {
  const isEmpty =
    value === null || (typeof value === 'object' && !Array.isArray(value) && Object.keys(value).length === 0);
  return isEmpty ? [] : [{ path: '/args', message: 'must be {} or null, as this agent takes no arguments' }];
}
