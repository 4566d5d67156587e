import { invalid } from 'platform/core/errors.ts';

export type AgentState = 'draft' | 'published' | 'retired';

export interface Limits {
  wallMs: number;
  maxSteps: number;
  memoryMb: number;
  outputBytes: number;
}

/** Prices of metered units, in credits: of one step, and of one begun millisecond of processor time. */
export interface UnitPrices {
  steps: number;
  cpuMs?: number;
}

/** A checked definition document; optional members are as its author wrote them, without defaults. */
export interface Definition {
  apiVersion: 'agents/v1';
  kind: 'FunctionalAgent' | 'ConversationalAgent';
  name: string;
  displayName?: string;
  description?: string;
  argumentsSchema?: Record<string, unknown>;
  outputSchema?: Record<string, unknown>;
  runtime: { type: 'expression'; language: 'jsonata'; source: string };
  interactiveTools?: string[];
  limits?: Partial<Limits>;
  /** In credits with at most six decimals. `max` defaults to `base`; see `pricingOf`. */
  pricing?: { base?: number; max?: number; perUnit?: Partial<UnitPrices> };
}

/** The price of a run in whole micro-credits: base price, highest charge, and prices of the metered units. */
export interface Price {
  baseMicros: number;
  maxMicros: number;
  stepMicros: number;
  cpuMsMicros: number;
}

const DEFAULT_LIMITS: Limits = { wallMs: 50_000, maxSteps: 1_000_000, memoryMb: 64, outputBytes: 524_288 };

export const limitsOf = (definition: Definition): Limits => ({ ...DEFAULT_LIMITS, ...definition.limits });

/** Whether an agent can be run through the API: functional, and without tools that need a user at the app. */
export const isRunnable = (definition: Definition): boolean =>
  definition.kind === 'FunctionalAgent' && (definition.interactiveTools ?? []).length === 0;

/**
 * The pricing in credits with its defaults: one credit per run; without `max` the price is fixed at `base`; a unit
 * without a price is free.
 */
export function pricingOf({ pricing = {} }: Definition): { base: number; max: number; perUnit: UnitPrices } {
  const base = pricing.base ?? 1;
  return { base, max: pricing.max ?? base, perUnit: { steps: 0, ...pricing.perUnit } };
}

/** @throws ServiceError INVALID_REQUEST: more than six decimals, or max below base */
export function priceOf(definition: Definition): Price {
  const { base, max, perUnit } = pricingOf(definition);
  if (max < base) throw invalid('/pricing/max', 'must not be less than base');
  return {
    baseMicros: microsOf(base, '/pricing/base'),
    maxMicros: microsOf(max, '/pricing/max'),
    stepMicros: microsOf(perUnit.steps, '/pricing/perUnit/steps'),
    cpuMsMicros: microsOf(perUnit.cpuMs ?? 0, '/pricing/perUnit/cpuMs'),
  };
}

function microsOf(credits: number, path: string): number {
  const micros = Math.round(credits * 1e6);
  if (micros / 1e6 !== credits) throw invalid(path, 'must have at most six decimals');
  return micros;
}
