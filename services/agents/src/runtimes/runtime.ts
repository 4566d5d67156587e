import type { Violation } from 'platform/core/errors.ts';
import type { Message } from 'proto/agents/v1/agents.ts';
import type { RunTools } from '../tools/run-tools.ts';
import type { RunLimits, RuntimeDefinition, Unit, Usage } from './rules.ts';
import type { Failure } from './runners/evaluation.ts';

export interface RunRequest {
  runtime: RuntimeDefinition;
  /** JSON text. */
  argsText: string;
  limits: RunLimits;
  /** Of a runtime that takes them, if the definition lists any. */
  tools: RunTools | undefined;
  outputSchema: Record<string, unknown> | undefined;
  /** Violations of the output schema by a JSON text. The output of every run is checked after it. */
  checkOutput(outputText: string): Promise<Violation[]>;
  /** Whether the definition asks for messages; without it there are none. */
  trace: boolean;
  organizationId: string;
  agent: string;
  agentVersion: number;
  agentExecutionId: string;
  /** The same for every run that is to take effect once: a run that repeats an interrupted one has its key. */
  idempotencyKey: string;
  signal: AbortSignal;
  /** Called when the run no longer waits. */
  onStart(): void;
}

export type RunResult =
  | {
      outcome: 'succeeded';
      outputText: string;
      messages: Message[];
      usage: Usage;
      /** Takes the secrets of the agent out of a text about the output; absent where an agent has none. */
      redact?: (text: string) => string;
    }
  /** The agent's fault, or that of its output; the message may be shown to the caller. */
  | { outcome: Failure; message: string; messages: Message[]; usage: Usage }
  /** When the run was ended from outside, `steps` is rounded down to ten thousand. */
  | { outcome: 'timed_out'; usage: Usage }
  | { outcome: 'cancelled'; usage: Usage }
  /** The platform's fault: what ran it died or reported what cannot be, a tool failed, or the service stopped. */
  | { outcome: 'interrupted' };

/** A way to run agents. A definition names it in `/runtime/type`. */
export interface Runtime {
  /** JSON Schema of a definition's member `runtime`. */
  readonly schema: object;
  /** The units that it measures. */
  readonly units: readonly Unit[];
  /** Whether its agents may have tools. */
  readonly takesTools: boolean;
  /** A run whose end it has not told so long after the run's limit of time is ended without it. */
  readonly overdueMs: number;
  /**
   * Checks a definition's member `runtime` before it is stored, also by `schema`.
   * @returns why an agent with it could never run; their paths begin below the member
   * @throws ServiceError QUEUE_FULL, UNAVAILABLE
   */
  check(organizationId: string, runtime: unknown): Promise<Violation[]>;
  /**
   * Waits for its turn with other organizations, then runs. The time limit begins with the run.
   * @throws ServiceError QUEUE_FULL, UNAVAILABLE (stopping): nothing was run
   */
  run(request: RunRequest): Promise<RunResult>;
  /** Ends all runs, also those that wait; they are interrupted. */
  stop(): Promise<void>;
}
