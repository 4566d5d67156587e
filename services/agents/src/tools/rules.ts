/** What the member `tools` of a definition gives an agent while it runs. */
export interface Tools {
  memory: MemoryTools;
}

/** Memory objects of these types, by name, may be read, or written, too. */
interface MemoryTools {
  types: string[];
  /** `read` if absent. */
  access?: MemoryAccess;
}

export interface ToolLimits {
  /** Further ones are refused. */
  maxToolCalls: number;
}

const MEMORY_ACCESS = ['read', 'write'] as const;
type MemoryAccess = (typeof MEMORY_ACCESS)[number];

export const mayWrite = ({ memory }: Tools): boolean => memory.access === 'write';

/** JSON Schema of the member `tools`. */
export const toolsSchema = {
  type: 'object',
  required: ['memory'],
  additionalProperties: false,
  description: 'What its tools may touch while it runs. Expressions have no tools.',
  properties: {
    memory: {
      type: 'object',
      required: ['types'],
      additionalProperties: false,
      description: 'Memory objects of its organization.',
      properties: {
        types: {
          type: 'array',
          minItems: 1,
          maxItems: 50,
          items: { type: 'string', pattern: '^[A-Za-z][A-Za-z0-9_.-]{0,63}$' },
          description: 'Names of the memory types; it sees no others.',
        },
        access: {
          enum: MEMORY_ACCESS,
          default: 'read',
          description: '`read`: find and get; `write`: also create, update and delete.',
        },
      },
    },
  },
} as const;
