import { createHash } from 'node:crypto';
import { canonicalJson } from 'platform/core/canonical-json.ts';
import { ServiceError, invalid, type Violation } from 'platform/core/errors.ts';
import { parseJson } from 'platform/core/parse-json.ts';
import { compileSchema } from 'platform/json-schema/schema.ts';
import { UNITS } from '../runtimes/rules.ts';
import type { Runtimes } from '../runtimes/runtimes.ts';
import { priceOf, type Definition } from './rules.ts';

const DEFINITION_BYTES = 262_144;

const credits = { type: 'number', minimum: 0, maximum: 1_000_000 };

/** JSON Schema (2020-12) of a definition document. Unknown members are rejected. */
const definitionSchema = {
  type: 'object',
  required: ['apiVersion', 'kind', 'name', 'runtime'],
  additionalProperties: false,
  properties: {
    apiVersion: { const: 'agents/v1' },
    kind: { enum: ['FunctionalAgent', 'ConversationalAgent'] },
    name: { type: 'string', pattern: '^[A-Za-z][A-Za-z0-9_.-]{0,63}$' },
    displayName: { type: 'string', minLength: 1, maxLength: 100 },
    description: { type: 'string', maxLength: 4_000 },
    argumentsSchema: { type: 'object' },
    outputSchema: { type: 'object' },
    runtime: { type: 'object', required: ['type'], properties: { type: { type: 'string' } } },
    interactiveTools: { type: 'array', maxItems: 100, items: { type: 'string', minLength: 1, maxLength: 100 } },
    trace: { type: 'boolean' },
    limits: {
      type: 'object',
      additionalProperties: false,
      properties: {
        wallMs: { type: 'integer', minimum: 100, maximum: 300_000 },
        maxSteps: { type: 'integer', minimum: 1, maximum: 1_000_000_000 },
        memoryMb: { type: 'integer', minimum: 16, maximum: 512 },
        outputBytes: { type: 'integer', minimum: 2, maximum: 524_288 },
      },
    },
    pricing: {
      type: 'object',
      additionalProperties: false,
      properties: {
        base: credits,
        max: credits,
        perUnit: {
          type: 'object',
          additionalProperties: false,
          minProperties: 1,
          properties: Object.fromEntries(UNITS.map((unit) => [unit, credits])),
        },
      },
      dependentRequired: { perUnit: ['max'] },
    },
  },
} as const;
const compiledDefinitionSchema = compileSchema(JSON.stringify(definitionSchema));

/**
 * Checks a definition document but for its runtime: its own schema, its prices, the schemas it contains.
 * @param text the document as JSON text, at most 256 KiB
 * @returns the definition, and the SHA-256 of the canonical document in hexadecimal
 * @throws ServiceError MALFORMED_JSON, INVALID_REQUEST, INVALID_SCHEMA; the paths in its details point into the
 * document
 */
export function parseDefinition(text: string): { definition: Definition; hash: string } {
  if (Buffer.byteLength(text) > DEFINITION_BYTES)
    throw invalid('', `A definition has at most ${DEFINITION_BYTES} bytes`);
  const value = valueOf(text);
  requireNoViolations(compiledDefinitionSchema.validate(value));
  const definition = value as Definition;
  // Throws when a price cannot be stored exactly.
  priceOf(definition);
  for (const member of ['argumentsSchema', 'outputSchema'] as const) {
    if (definition[member]) compileSchema(JSON.stringify(definition[member]), { path: `/${member}` });
  }
  return { definition, hash: createHash('sha256').update(canonicalJson(value)).digest('hex') };
}

/**
 * Checks that the runtime of a definition exists, can run it, and measures what it prices.
 * @throws ServiceError INVALID_REQUEST, as parseDefinition; QUEUE_FULL, UNAVAILABLE
 */
export async function checkRuntime(
  organizationId: string,
  { runtime, pricing }: Definition,
  { byType }: Runtimes,
): Promise<void> {
  if (!Object.hasOwn(byType, runtime.type))
    throw invalid('/runtime/type', `must be one of ${Object.keys(byType).join(', ')}`);
  const { units, check } = byType[runtime.type]!;
  const unmeasured = Object.keys(pricing?.perUnit ?? {}).filter((unit) => !units.some((known) => known === unit));
  const faults = await check(organizationId, runtime);
  requireNoViolations([
    ...faults.map(({ path, message }) => ({ path: `/runtime${path}`, message })),
    ...unmeasured.map((unit) => ({
      path: `/pricing/perUnit/${unit}`,
      message: `the runtime ${runtime.type} measures ${units.join(', ')}`,
    })),
  ]);
}

function valueOf(text: string): unknown {
  try {
    return parseJson(text);
  } catch (cause) {
    throw new ServiceError('MALFORMED_JSON', 'The definition is not valid JSON', { cause });
  }
}

function requireNoViolations(details: Violation[]): void {
  if (details.length > 0) throw new ServiceError('INVALID_REQUEST', 'The definition is not valid', { details });
}
