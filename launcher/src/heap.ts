import { integer, type ConfigOf } from 'platform/core/config.ts';

/**
 * Options of V8, which takes them only when a process starts, so they are settings of the launcher.
 * The defaults are measured in docs/adr/0024.
 */
export const heapConfig = {
  MAX_OLD_SPACE_MB: integer({
    default: 512,
    min: 64,
    max: 65_536,
    description: 'Heap of the gateway and of each service, in MB. One that needs more ends, and is started again.',
  }),
  MAX_SEMI_SPACE_MB: integer({
    default: 4,
    min: 1,
    max: 64,
    description:
      'Semi-space of auth, memory and credits, in MB: a third of what V8 takes for new objects. More costs memory and ' +
      'saves processor time under load.',
  }),
  GATEWAY_MAX_SEMI_SPACE_MB: integer({
    default: 16,
    min: 1,
    max: 64,
    description: 'The same for the gateway, which makes new objects for every request that is under way.',
  }),
  AGENTS_MAX_SEMI_SPACE_MB: integer({
    default: 16,
    min: 1,
    max: 64,
    description: 'The same for agents, which keeps what a run has made until the run ends.',
  }),
  HEAP_GROWTH_PERCENT: integer({
    default: 50,
    min: 10,
    max: 1_000,
    description:
      'By how much a heap may grow after a collection of all garbage before the next one. More costs memory and saves ' +
      'processor time under load.',
  }),
};

type HeapConfig = ConfigOf<typeof heapConfig>;

/** The flags that NODE_OPTIONS takes, too. @param name of the process that is started with them */
export const heapBounds = (config: HeapConfig, name: string): string[] => [
  `--max-old-space-size=${config.MAX_OLD_SPACE_MB}`,
  `--max-semi-space-size=${semiSpaceMbOf(config, name)}`,
];

function semiSpaceMbOf(config: HeapConfig, name: string): number {
  if (name === 'gateway') return config.GATEWAY_MAX_SEMI_SPACE_MB;
  return name === 'agents' ? config.AGENTS_MAX_SEMI_SPACE_MB : config.MAX_SEMI_SPACE_MB;
}

/** @param name of the process that is started with them */
export const heapFlags = (config: HeapConfig, name: string): string[] => [
  ...heapBounds(config, name),
  `--heap-growing-percent=${config.HEAP_GROWTH_PERCENT}`,
];
