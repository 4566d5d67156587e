/** What the options of the command line set. */
export interface Settings {
  /** Objects of each system. */
  objects: number;
  connections: number;
  rounds: number;
  /** Of one round. */
  seconds: number;
  /** A warm-up ends after this time, even if the throughput is not steady. */
  warmUpSeconds: number;
  /** Of the soak. */
  minutes: number;
  /** Objects of the larger system of `scale`. */
  manyObjects: number;
  /** Of the JSON Schemas of `schemas`. */
  folder: string;
}

export const DEFAULTS: Settings = {
  objects: 10_000,
  connections: 64,
  rounds: 5,
  seconds: 5,
  warmUpSeconds: 20,
  minutes: 10,
  manyObjects: 1_000_000,
  folder: 'platform/test/json-schema/generated',
};

/** Smaller, because SecantusDB is one Python process that sorts all objects of a type for every page of a list. */
export const ON_SERVERS: Partial<Settings> = { objects: 1_000, connections: 8 };
