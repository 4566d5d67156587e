import type { Message } from 'proto/agents/v1/agents.ts';

export interface RunLimits {
  /** From the moment a runner has the run; waiting in the queue is not counted. */
  wallMs: number;
  maxSteps: number;
  memoryMb: number;
  outputBytes: number;
}

export interface Evaluation {
  runtime: { type: 'expression'; source: string };
  argsText: string;
  limits: RunLimits;
  organizationId: string;
  signal: AbortSignal;
}

/** `steps` are metered; of a runner that was killed, what it had reported by then. */
export type EvaluationResult =
  | { outcome: 'succeeded'; outputText: string; steps: number; messages: Message[] }
  /** The agent's fault; the message is for callers. */
  | { outcome: 'failed'; code: 'agent_failed'; message: string; steps: number }
  | { outcome: 'timed_out' | 'cancelled'; steps: number }
  /** The platform lost it: the runner was killed from outside. */
  | { outcome: 'interrupted' };

/** What a runner is given. */
export interface RunnerTask {
  source: string;
  argsText: string;
  limits: RunLimits;
}
/** What a runner answers. */
export type RunnerAnswer = { outputText: string; steps: number } | { message: string; steps: number } | { timedOut: true; steps: number };
