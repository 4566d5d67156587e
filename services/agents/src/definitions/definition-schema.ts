/** Largest definition document in bytes of JSON text. */
export const DEFINITION_BYTES = 262_144;

const credits = { type: 'number', minimum: 0, maximum: 1_000_000 };

/** JSON Schema (2020-12) of a definition document: the whole of what an author may write, unknown members refused. */
export const definitionSchema = {
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
    runtime: {
      type: 'object',
      required: ['type', 'language', 'source'],
      additionalProperties: false,
      properties: {
        type: { const: 'expression' },
        language: { const: 'jsonata' },
        source: { type: 'string', minLength: 1, maxLength: 65_536 },
      },
    },
    interactiveTools: { type: 'array', maxItems: 100, items: { type: 'string', minLength: 1, maxLength: 100 } },
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
        perUnit: { type: 'object', additionalProperties: false, required: ['steps'], properties: { steps: credits } },
      },
      dependentRequired: { perUnit: ['max'] },
    },
  },
} as const;
