import { invalid } from 'platform/core/errors.ts';
import type { ToolLimits, Tools } from '../tools/rules.ts';
import { UNITS, type RunLimits, type RuntimeDefinition, type Unit } from '../runtimes/rules.ts';

export type AgentState = 'draft' | 'published' | 'retired';

/** Prices of metered units, each in credits. */
export type UnitPrices = Partial<Record<Unit, number>>;

export type Limits = RunLimits & ToolLimits;

/** A checked definition document; optional members are as its author wrote them, without defaults. */
export interface Definition {
  apiVersion: 'agents/v1';
  kind: 'FunctionalAgent' | 'ConversationalAgent';
  name: string;
  displayName?: string;
  description?: string;
  argumentsSchema?: Record<string, unknown>;
  outputSchema?: Record<string, unknown>;
  runtime: RuntimeDefinition;
  tools?: Tools;
  interactiveTools?: string[];
  /** Whether executions keep what the agent writes while it runs, as messages. */
  trace?: boolean;
  limits?: Partial<Limits>;
  /** In credits with at most six decimals. `max` defaults to `base`; see `pricingOf`. */
  pricing?: { base?: number; max?: number; perUnit?: UnitPrices };
}

/** The price of a run in whole micro-credits: base price, highest charge, and the price of each metered unit. */
export interface Price {
  baseMicros: number;
  maxMicros: number;
  unitMicros: Readonly<Record<Unit, number>>;
}

export const DEFAULT_LIMITS: Limits = {
  ...{ wallMs: 50_000, maxSteps: 1_000_000, memoryMb: 64, outputBytes: 524_288 },
  maxToolCalls: 100,
};

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
    unitMicros: Object.fromEntries(
      UNITS.map((unit) => [unit, microsOf(perUnit[unit] ?? 0, `/pricing/perUnit/${unit}`)]),
    ) as Record<Unit, number>,
  };
}

function microsOf(credits: number, path: string): number {
  const micros = Math.round(credits * 1e6);
  if (micros / 1e6 !== credits) throw invalid(path, 'must have at most six decimals');
  return micros;
}
