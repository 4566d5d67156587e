import { isCallerLost } from 'platform/rpc/call.ts';
import { ServiceError } from 'platform/core/errors.ts';
import type { LoadedVersion } from '../definitions/versions.ts';
import type { Deps } from '../deps.ts';
import type { Evaluation, EvaluationResult } from '../runtimes/expression/runner-pool.ts';
import { INTERRUPTED, type End } from './rules.ts';
import type { Execution, ExecutionPayload } from './store.ts';

export type Evaluated = { end: End } & Pick<ExecutionPayload, 'output' | 'messages'>;

/**
 * Runs the agent in the pool and judges what came of it.
 * @throws ServiceError QUEUE_FULL, UNAVAILABLE: nothing was run
 */
export async function evaluate(
  { runners, log }: Pick<Deps, 'runners' | 'log'>,
  execution: Execution,
  version: LoadedVersion,
  given: Pick<Evaluation, 'argsText' | 'signal' | 'begun'>,
): Promise<Evaluated> {
  try {
    const {
      runtime: { type, source },
      limits,
    } = version;
    const result = await runners.evaluate({
      ...given,
      runtime: { type, source },
      limits,
      organizationId: execution.organizationId,
    });
    return judged(
      result.outcome === 'cancelled' && isCallerLost(given.signal) ? { outcome: 'interrupted' } : result,
      version,
    );
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    log.error({ error, agentExecutionId: execution._id, requestId: execution.requestId }, 'the runner failed');
    return failed('failed', 'INTERNAL', 'The platform failed to run the agent', 0);
  }
}

const failed = (
  status: End['status'],
  reason: NonNullable<End['error']>['reason'],
  message: string,
  steps: number,
): Evaluated => ({ end: { status, error: { reason, message }, steps }, output: null, messages: '[]' });

function judged(result: EvaluationResult, version: LoadedVersion): Evaluated {
  switch (result.outcome) {
    case 'succeeded': {
      const { outputText: output, steps } = result;
      const [violation] = version.checkOutput(output);
      if (violation)
        return failed(
          'failed',
          'OUTPUT_INVALID',
          `The agent's output does not match its output schema: ${violation.path} ${violation.message}`,
          steps,
        );
      return { end: { status: 'succeeded', error: null, steps }, output, messages: JSON.stringify(result.messages) };
    }
    case 'failed':
      return failed('failed', 'AGENT_FAILED', result.message, result.steps);
    case 'timed_out':
      return failed('timed_out', 'RUN_TIMEOUT', 'The run took too long', result.steps);
    case 'cancelled':
      return failed('cancelled', 'RUN_CANCELLED', 'The run was cancelled', result.steps);
    case 'interrupted':
      return { end: INTERRUPTED, output: null, messages: '[]' };
  }
}
