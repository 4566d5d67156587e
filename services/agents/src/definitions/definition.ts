import { createHash } from 'node:crypto';
import { canonicalJson } from 'platform/core/canonical-json.ts';
import { ServiceError, invalid, type Violation } from 'platform/core/errors.ts';
import { parseJson } from 'platform/core/parse-json.ts';
import { strictJsonOf } from 'platform/json/strict-text.ts';
import { requireMeant } from 'platform/json-schema/authored.ts';
import { compileSchema } from 'platform/json-schema/schema.ts';
import { toolsSchema } from '../tools/rules.ts';
import { UNITS, type Unit } from '../runtimes/rules.ts';
import type { Runtimes } from '../runtimes/runtimes.ts';
import { DEFAULT_LIMITS, priceOf, type Definition } from './rules.ts';

const UNIT_PRICES: Record<Unit, string> = {
  steps: 'Credits for each step of a program.',
  cpuMs: 'Credits for each begun millisecond of processor time.',
  calls: 'Credits for each call of an endpoint.',
  tokensIn: 'Credits for each token that a language model reads.',
  tokensOut: 'Credits for each token that a language model writes.',
};

const DEFINITION_BYTES = 262_144;

const credits = (description: string, more: object = {}) => ({
  type: 'number',
  minimum: 0,
  maximum: 1_000_000,
  ...more,
  description,
});

/**
 * JSON Schema (2020-12) of a definition document, but for `runtime`, whose schema is that of its type. Unknown members
 * are rejected. docs/agent-definition.md is made from it.
 */
export const definitionSchema = {
  type: 'object',
  required: ['apiVersion', 'kind', 'name', 'runtime'],
  additionalProperties: false,
  properties: {
    apiVersion: { const: 'agents/v1', description: 'The form of this document.' },
    kind: {
      enum: ['FunctionalAgent', 'ConversationalAgent'],
      description: 'The API runs functional agents; it stores conversational ones.',
    },
    name: {
      type: 'string',
      pattern: '^[A-Za-z][A-Za-z0-9_.-]{0,63}$',
      description: 'By which clients run it; unique in the organization.',
    },
    displayName: { type: 'string', minLength: 1, maxLength: 100, description: 'Its name for people.' },
    description: { type: 'string', maxLength: 4_000, description: 'What it does, for those who choose an agent.' },
    argumentsSchema: {
      type: 'object',
      description: 'JSON Schema of its args. Without it, args must be {} or null.',
    },
    outputSchema: { type: 'object', description: 'JSON Schema of its output; another output fails the run.' },
    runtime: {
      type: 'object',
      required: ['type'],
      properties: { type: { type: 'string' } },
      description: 'How it is run; see Runtimes.',
    },
    tools: toolsSchema,
    interactiveTools: {
      type: 'array',
      maxItems: 100,
      items: { type: 'string', minLength: 1, maxLength: 100 },
      description: 'Tools that need a person at an app. The API does not run an agent that has any.',
    },
    trace: {
      type: 'boolean',
      default: false,
      description: 'Whether executions keep what the agent writes, as messages.',
    },
    limits: {
      description: 'What a run may take.',
      type: 'object',
      additionalProperties: false,
      properties: {
        wallMs: {
          ...{ type: 'integer', minimum: 100, maximum: 300_000, default: DEFAULT_LIMITS.wallMs },
          description: 'Time from the start of a run to its end, in milliseconds; then it is 504 `run_timeout`.',
        },
        maxSteps: {
          ...{ type: 'integer', minimum: 1, maximum: 1_000_000_000, default: DEFAULT_LIMITS.maxSteps },
          description: 'Steps of a program; then the run has failed.',
        },
        memoryMb: {
          ...{ type: 'integer', minimum: 16, maximum: 512, default: DEFAULT_LIMITS.memoryMb },
          description: 'Memory of a program, in MiB; then the run has failed.',
        },
        outputBytes: {
          ...{ type: 'integer', minimum: 2, maximum: 524_288, default: DEFAULT_LIMITS.outputBytes },
          description: 'Of the output as JSON; then the run has failed.',
        },
        maxToolCalls: {
          ...{ type: 'integer', minimum: 1, maximum: 1_000, default: DEFAULT_LIMITS.maxToolCalls },
          description: 'Calls of its tools; further ones are refused, and a script fails after 100 refused calls.',
        },
      },
    },
    pricing: {
      description: 'What a run costs. Without it, one credit.',
      type: 'object',
      additionalProperties: false,
      properties: {
        base: credits('Credits of a run that succeeds, at most six decimals.', { default: 1 }),
        max: credits('The most that a run costs, which is reserved before it; `base` if absent.'),
        perUnit: {
          description: 'Prices of what a run uses, of units that its runtime measures; it needs `max`.',
          type: 'object',
          additionalProperties: false,
          minProperties: 1,
          properties: Object.fromEntries(UNITS.map((unit) => [unit, credits(UNIT_PRICES[unit], { default: 0 })])),
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
  requireNoViolations(compiledDefinitionSchema.validate(value, undefined, { showAllowed: true }));
  const definition = value as Definition;
  // Throws when a price cannot be stored exactly.
  priceOf(definition);
  for (const member of ['argumentsSchema', 'outputSchema'] as const) {
    const schema = definition[member];
    if (schema === undefined) continue;
    requireMeant(schema, `/${member}`);
    compileSchema(JSON.stringify(schema), { path: `/${member}` });
  }
  return { definition, hash: createHash('sha256').update(canonicalJson(value)).digest('hex') };
}

/**
 * Checks that the runtime of a definition exists, can run it, and measures what it prices.
 * @throws ServiceError INVALID_REQUEST, as parseDefinition; QUEUE_FULL, UNAVAILABLE
 */
export async function checkRuntime(
  organizationId: string,
  { runtime, pricing, tools }: Definition,
  { byType }: Runtimes,
): Promise<void> {
  if (!Object.hasOwn(byType, runtime.type))
    throw invalid('/runtime/type', `must be one of ${Object.keys(byType).join(', ')}`);
  const { units, takesTools, check } = byType[runtime.type]!;
  const unmeasured = Object.keys(pricing?.perUnit ?? {}).filter((unit) => !units.some((known) => known === unit));
  const faults = await check(organizationId, runtime);
  requireNoViolations([
    ...(tools && !takesTools
      ? [{ path: '/tools', message: `must be absent: the runtime ${runtime.type} has no tools` }]
      : []),
    ...faults.map(({ path, message }) => ({ path: `/runtime${path}`, message })),
    ...unmeasured.map((unit) => ({
      path: `/pricing/perUnit/${unit}`,
      message: `the runtime ${runtime.type} measures ${units.join(', ')}`,
    })),
  ]);
}

/**
 * The document, by the rules for the bodies of requests (ADR 19). What JSON it may hold is said here alone.
 * @throws ServiceError MALFORMED_JSON, INVALID_REQUEST
 */
function valueOf(text: string): unknown {
  try {
    return parseJson(strictJsonOf(text, ['argumentsSchema', 'outputSchema']).toString());
  } catch (cause) {
    if (cause instanceof ServiceError && cause.reason !== 'MALFORMED_JSON') throw cause;
    throw new ServiceError('MALFORMED_JSON', 'The definition is not valid JSON', { cause });
  }
}

function requireNoViolations(details: Violation[]): void {
  if (details.length > 0) throw new ServiceError('INVALID_REQUEST', 'The definition is not valid', { details });
}
