import { invalid } from 'platform/core/errors.ts';

export type AgentState = 'draft' | 'published' | 'retired';

export interface Limits {
  wallMs: number;
  maxSteps: number;
  memoryMb: number;
  outputBytes: number;
}

/** A definition document as its author wrote it, checked. */
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
  /** Credits, at most six decimals. */
  pricing?: { base?: number; max?: number; perUnit?: { steps: number } };
}

/** What a run costs, in whole micro-credits. */
export interface Price {
  baseMicros: number;
  maxMicros: number;
  stepMicros: number;
}

const DEFAULT_LIMITS: Limits = { wallMs: 50_000, maxSteps: 1_000_000, memoryMb: 64, outputBytes: 524_288 };

export const limitsOf = (definition: Definition): Limits => ({ ...DEFAULT_LIMITS, ...definition.limits });

/** Functional, and in need of nothing that only the app has. */
export const isRunnable = (definition: Definition): boolean =>
  definition.kind === 'FunctionalAgent' && (definition.interactiveTools ?? []).length === 0;

/** The pricing in credits with its defaults: one credit a run; without `max` the price is fixed. */
export function pricingOf({ pricing = {} }: Definition): { base: number; max: number; perUnit: { steps: number } } {
  const base = pricing.base ?? 1;
  return { base, max: pricing.max ?? base, perUnit: pricing.perUnit ?? { steps: 0 } };
}

/** @throws ServiceError INVALID_REQUEST: more than six decimals, or max below base */
export function priceOf(definition: Definition): Price {
  const { base, max, perUnit } = pricingOf(definition);
  if (max < base) throw invalid('/pricing/max', 'must not be less than base');
  return {
    baseMicros: microsOf(base, '/pricing/base'),
    maxMicros: microsOf(max, '/pricing/max'),
    stepMicros: microsOf(perUnit.steps, '/pricing/perUnit/steps'),
  };
}

function microsOf(credits: number, path: string): number {
  const micros = Math.round(credits * 1e6);
  if (micros / 1e6 !== credits) throw invalid(path, 'must have at most six decimals');
  return micros;
}
