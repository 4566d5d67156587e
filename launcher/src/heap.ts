import { integer, type ConfigOf } from 'platform/core/config.ts';

/**
 * Node's own options of the same names. V8 takes them only when a process starts, so they are settings of the launcher.
 * The defaults are measured in docs/adr/0024.
 */
export const heapConfig = {
  MAX_OLD_SPACE_MB: integer({
    default: 512,
    min: 64,
    max: 65_536,
    description: 'Heap of each process, in MB. A process that needs more ends, and is started again.',
  }),
  MAX_SEMI_SPACE_MB: integer({
    default: 4,
    min: 1,
    max: 64,
    description:
      'A third of what each service takes for new objects, in MB. More costs memory and saves processor time under load.',
  }),
  GATEWAY_MAX_SEMI_SPACE_MB: integer({
    default: 16,
    min: 1,
    max: 64,
    description: 'The same for the gateway, which makes new objects for every request that is under way.',
  }),
};

/** @param name of the process that is started with them */
export const heapFlags = (
  { MAX_OLD_SPACE_MB, MAX_SEMI_SPACE_MB, GATEWAY_MAX_SEMI_SPACE_MB }: ConfigOf<typeof heapConfig>,
  name: string,
): string[] => [
  `--max-old-space-size=${MAX_OLD_SPACE_MB}`,
  `--max-semi-space-size=${name === 'gateway' ? GATEWAY_MAX_SEMI_SPACE_MB : MAX_SEMI_SPACE_MB}`,
];
