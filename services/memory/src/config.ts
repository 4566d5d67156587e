import { integer, type ConfigOf } from 'platform/core/config.ts';

export const config = {
  MEMORY_CONTENT_MAX_BYTES: integer({
    default: 262_144,
    min: 1_024,
    max: 1_048_576,
    description: 'Largest content of a memory object, in bytes of its JSON text.',
  }),
  MEMORY_KEY_MAX_LENGTH: integer({
    default: 512,
    min: 1,
    max: 1_024,
    description: 'Longest key of a memory object, in characters.',
  }),
  MEMORY_SCHEMA_MAX_BYTES: integer({
    default: 65_536,
    min: 1_024,
    max: 65_536,
    description: 'Largest jsonSchema of a memory type, in bytes of its JSON text.',
  }),
  MEMORY_SCHEMAS_MAX_BYTES: integer({
    default: 8_388_608,
    min: 65_536,
    max: 67_108_864,
    description: 'Largest total of the jsonSchemas of an organization, in bytes of their JSON text.',
  }),
  MEMORY_SCHEMA_CACHE_BYTES: integer({
    default: 67_108_864,
    min: 1_048_576,
    max: 4_294_967_296,
    description: 'Memory for compiled jsonSchemas, in bytes; the organizations that use it share it equally.',
  }),
  MEMORY_CHANGE_WAIT_MS: integer({
    default: 10_000,
    min: 0,
    max: 60_000,
    description: 'How long a request waits for a change or deletion of a memory type, before the answer 202.',
  }),
  MEMORY_EVENT_CONTENT_MAX_BYTES: integer({
    default: 0,
    min: 0,
    max: 32_768,
    description: 'Largest content that change events of memory objects carry, in bytes of its JSON text; 0: none does.',
  }),
  MEMORY_PAGE_SIZE: integer({
    default: 20,
    min: 1,
    max: 1_000,
    description: 'Items on a page of a list if the request has no pageSize.',
  }),
  MEMORY_PAGE_SIZE_MAX: integer({ default: 100, min: 1, max: 1_000, description: 'Largest pageSize of a list.' }),
  MEMORY_OFFSET_MAX: integer({
    default: 100_000,
    min: 0,
    max: 10_000_000,
    description: 'Most items that may precede the requested page.',
  }),
};
export type Config = ConfigOf<typeof config>;
