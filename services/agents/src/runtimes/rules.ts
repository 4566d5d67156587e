/**
 * What a run uses and what has a price: steps of its program, processor time of its process in begun milliseconds,
 * calls of its endpoint, repeated ones among them, and tokens that a language model read and wrote.
 */
export const UNITS = ['steps', 'cpuMs', 'calls', 'tokensIn', 'tokensOut'] as const;
export type Unit = (typeof UNITS)[number];
/** How much a run has used of each unit that its runtime measures. */
export type Usage = Partial<Record<Unit, number>>;

export interface RunLimits {
  wallMs: number;
  maxSteps: number;
  /** In MiB. */
  memoryMb: number;
  /** Of the output as JSON text. */
  outputBytes: number;
}

/** The member `runtime` of a definition, as the schema of its runtime allows it. */
export interface RuntimeDefinition {
  type: string;
}
