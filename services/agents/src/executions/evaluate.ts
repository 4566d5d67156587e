import { isCallerLost } from 'platform/rpc/call.ts';
import { ServiceError, type KnownReason } from 'platform/core/errors.ts';
import type { LoadedVersion } from '../definitions/version-loader.ts';
import type { Deps } from '../deps.ts';
import type { EvaluationRequest, EvaluationResult, Usage } from '../runtimes/expression/runner-pool.ts';
import { INTERRUPTED, type EndStatus, type RunEnd } from './rules.ts';
import type { ExecutionPayloadRecord, ExecutionRecord } from './store.ts';

/** How a run ended and what it produced; `output` and `messages` are JSON text. */
export type EvaluatedRun = { end: RunEnd } & Pick<ExecutionPayloadRecord, 'output' | 'messages'>;

/**
 * Evaluates an agent in the runner pool and decides how its run ended.
 * @throws ServiceError QUEUE_FULL, UNAVAILABLE: nothing was run
 */
export async function evaluate(
  { runners, log }: Pick<Deps, 'runners' | 'log'>,
  execution: ExecutionRecord,
  version: LoadedVersion,
  request: Pick<EvaluationRequest, 'argsText' | 'signal' | 'onStart'>,
): Promise<EvaluatedRun> {
  const { runtime, limits } = version;
  try {
    const result = await runners.evaluate({
      ...request,
      runtime: { type: runtime.type, source: runtime.source },
      limits,
      organizationId: execution.organizationId,
    });
    // A client that disconnects cancels its run; a lost gateway process is a fault of the platform.
    const lost = result.outcome === 'cancelled' && isCallerLost(request.signal);
    return await evaluatedRun(lost ? { outcome: 'interrupted' } : result, version);
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    log.error({ error, agentExecutionId: execution._id, requestId: execution.requestId }, 'the runner failed');
    return failedRun('failed', 'INTERNAL', 'The platform failed to run the agent', { steps: 0, cpuMs: 0 });
  }
}

async function evaluatedRun(result: EvaluationResult, version: LoadedVersion): Promise<EvaluatedRun> {
  switch (result.outcome) {
    case 'succeeded': {
      const { outputText: output, steps, cpuMs } = result;
      const [violation] = await version.checkOutput(output);
      if (violation)
        return failedRun(
          'failed',
          'OUTPUT_INVALID',
          `The agent's output does not match its output schema: ${violation.path} ${violation.message}`,
          result,
        );
      return {
        end: { status: 'succeeded', error: null, steps, cpuMs },
        output,
        messages: JSON.stringify(result.messages),
      };
    }
    case 'failed':
      return failedRun('failed', 'AGENT_FAILED', result.message, result);
    case 'timed_out':
      return failedRun('timed_out', 'RUN_TIMEOUT', 'The run took too long', result);
    case 'cancelled':
      return failedRun('cancelled', 'RUN_CANCELLED', 'The run was cancelled', result);
    case 'interrupted':
      return { end: INTERRUPTED, output: null, messages: '[]' };
  }
}

const failedRun = (status: EndStatus, reason: KnownReason, message: string, { steps, cpuMs }: Usage): EvaluatedRun => ({
  end: { status, error: { reason, message }, steps, cpuMs },
  output: null,
  messages: '[]',
});
