import type { Message } from 'proto/agents/v1/agents.ts';
import { isCallerLost } from 'platform/rpc/call.ts';
import { inSpan } from 'platform/telemetry/traces.ts';
import { ServiceError, type KnownReason } from 'platform/core/errors.ts';
import type { LoadedVersion } from '../definitions/version-loader.ts';
import type { Deps } from '../deps.ts';
import type { Usage } from '../runtimes/rules.ts';
import type { RunRequest, RunResult } from '../runtimes/runtime.ts';
import { endInTime } from './end-in-time.ts';
import { INTERRUPTED, type EndStatus, type RunEnd } from './rules.ts';
import type { ExecutionPayloadRecord, ExecutionRecord } from './store.ts';

/** How a run ended and what it produced; `output` and `messages` are JSON text. */
export type EvaluatedRun = { end: RunEnd } & Pick<ExecutionPayloadRecord, 'output' | 'messages'>;

/**
 * Runs an agent by its runtime and decides how the run ended.
 * @throws ServiceError QUEUE_FULL, UNAVAILABLE: nothing was run
 */
export async function evaluate(
  { runtimes, log }: Pick<Deps, 'runtimes' | 'log'>,
  execution: ExecutionRecord,
  version: LoadedVersion,
  request: Pick<RunRequest, 'argsText' | 'idempotencyKey' | 'tools' | 'signal' | 'onStart'>,
): Promise<EvaluatedRun> {
  const { runtime: definition, limits, trace, outputSchema, checkOutput } = version;
  const ids = { agentExecutionId: execution._id, requestId: execution.requestId };
  const runtime = runtimes.byType[definition.type]!;
  let usage: Usage = {};

  // A client that disconnects cancels its run; a lost gateway process is a fault of the platform.
  const ended = (result: RunResult): Promise<EvaluatedRun> =>
    evaluatedRun(
      result.outcome === 'cancelled' && isCallerLost(request.signal) ? { outcome: 'interrupted' } : result,
      version,
    );

  async function runAndCheck(signal: AbortSignal, onStart: () => void): Promise<EvaluatedRun> {
    const run: RunRequest = {
      ...request,
      ...{ runtime: definition, limits, trace, outputSchema, checkOutput, signal },
      organizationId: execution.organizationId,
      agent: execution.agent,
      agentVersion: execution.agentVersion,
      agentExecutionId: execution._id,
      onStart() {
        request.onStart();
        onStart();
      },
    };
    const attributes = () => ({
      'agentmemory.agent_execution.id': execution._id,
      'agentmemory.runtime': definition.type,
    });
    const result = await inSpan('internal', `evaluate ${definition.type}`, attributes, () => runtime.run(run));
    if (result.outcome !== 'interrupted') ({ usage } = result);
    return ended(result);
  }

  try {
    const limitMs = limits.wallMs + runtime.overdueMs;
    const evaluated = await endInTime({ signal: request.signal, limitMs }, runAndCheck);
    if (typeof evaluated !== 'string') return evaluated;
    log.error({ ...ids, runtime: definition.type }, 'a run did not end, and was ended without its runtime');
    return await ended({ outcome: evaluated, usage });
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    log.error({ error, ...ids }, 'the runtime failed');
    return failedRun('failed', 'INTERNAL', 'The platform failed to run the agent', {});
  }
}

async function evaluatedRun(result: RunResult, version: LoadedVersion): Promise<EvaluatedRun> {
  switch (result.outcome) {
    case 'succeeded': {
      const { outputText: output, usage, redact = (text: string) => text } = result;
      const [violation] = await version.checkOutput(output);
      if (violation)
        return failedRun(
          'failed',
          'OUTPUT_INVALID',
          redact(`The agent's output does not match its output schema: ${violation.path} ${violation.message}`),
          usage,
          result.messages,
        );
      return {
        end: { status: 'succeeded', error: null, usage },
        output,
        messages: JSON.stringify(result.messages),
      };
    }
    case 'failed':
      return failedRun('failed', 'AGENT_FAILED', result.message, result.usage, result.messages);
    case 'output_invalid':
      return failedRun('failed', 'OUTPUT_INVALID', result.message, result.usage, result.messages);
    case 'timed_out':
      return failedRun('timed_out', 'RUN_TIMEOUT', 'The run took too long', result.usage);
    case 'cancelled':
      return cancelledRun(result.usage);
    case 'interrupted':
      return { end: INTERRUPTED, output: null, messages: '[]' };
  }
}

/** A cancelled run is charged for what it has used, and has no output. */
export const cancelledRun = (usage: Usage): EvaluatedRun =>
  failedRun('cancelled', 'RUN_CANCELLED', 'The run was cancelled', usage);

const failedRun = (
  status: EndStatus,
  reason: KnownReason,
  message: string,
  usage: Usage,
  messages: readonly Message[] = [],
): EvaluatedRun => ({
  end: { status, error: { reason, message }, usage },
  output: null,
  messages: JSON.stringify(messages),
});
