import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { newId } from 'platform/core/ids.ts';
import { actorOf } from 'platform/core/principal.ts';
import type { RunAgentRequest, RunAgentResponse } from 'proto/agents/v1/agents.ts';
import type { LoadedVersion } from '../definitions/versions.ts';
import type { Deps } from '../deps.ts';
import { answerOf } from './answer.ts';
import { evaluate, type Evaluated } from './evaluate.ts';
import { endEvents } from './events.ts';
import { startHeartbeat } from './heartbeat.ts';
import { replay, requestHashOf } from './replay.ts';
import { reserve } from './reserve.ts';
import { chargeOf, checkRunRequest, type RunRequest } from './rules.ts';
import { settle } from './settle.ts';
import type { Execution } from './store.ts';
import { withdraw } from './withdraw.ts';

type RunDeps = Omit<Deps, 'platformStore' | 'bus'>;

/**
 * One run: claim → reserve → evaluate → end → settle → answer. Whatever breaks in between, the reaper finishes:
 * the end is written once, by whoever holds the lease, and only what is written is charged.
 */
export async function runAgent(
  deps: RunDeps,
  request: RunAgentRequest,
  context: CallContext,
): Promise<RunAgentResponse> {
  const organizationId = organizationOfCall(context);
  const run = checkRunRequest(request);
  const earlier = run.key === undefined ? undefined : await replay(deps, organizationId, run.key, run);
  if (earlier) return earlier;
  const version = await requireRunnable(deps, organizationId, run);

  const execution = newExecution(deps, version, run, context);
  if (!(await record(deps, execution, run))) return answerOfWinner(deps, organizationId, run);
  await reserve(deps, execution, version.price.maxMicros, context);

  const { startedAt, ...evaluated } = await evaluateOwned(deps, execution, version, run, context);
  const ended = await end(deps, { ...execution, startedAt }, version, evaluated);
  if (!ended) return answerOfTaken(deps, execution);
  await settle(deps, ended, { principal: context.principal, requestId: context.requestId }).catch((error: unknown) =>
    context.log.warn({ error, agentExecutionId: ended._id }, 'not settled yet; the reaper will'),
  );
  return answerOf(ended, evaluated);
}

/** @throws ServiceError NOT_FOUND, AGENT_NOT_RUNNABLE, INVALID_ARGS */
async function requireRunnable(
  deps: Pick<Deps, 'definitions' | 'loadVersion'>,
  organizationId: string,
  { agentName, args }: RunRequest,
): Promise<LoadedVersion> {
  const agent = await deps.definitions.find(organizationId, agentName);
  if (!agent || agent.publishedVersionId === null) throw new ServiceError('NOT_FOUND', 'Agent not found');
  if (!agent.runnable) throw new ServiceError('AGENT_NOT_RUNNABLE');
  const version = await deps.loadVersion(organizationId, agent.publishedVersionId);
  const details = version.checkArgs(args);
  if (details.length > 0) throw new ServiceError('INVALID_ARGS', undefined, { details });
  return version;
}

function newExecution(
  { clock, instanceId }: Pick<Deps, 'clock' | 'instanceId'>,
  { agent, version }: LoadedVersion,
  { key }: RunRequest,
  { principal, requestId }: CallContext,
): Execution {
  return {
    _id: newId(),
    organizationId: principal.organizationId,
    sessionId: `api-${newId()}`,
    agent,
    agentVersion: version,
    status: 'queued',
    error: null,
    actor: actorOf(principal),
    chargeMicros: null,
    steps: null,
    requestId,
    runKeyId: key === undefined ? null : newId(),
    createdAt: isoTime(clock.now()),
    startedAt: null,
    finishedAt: null,
    owner: instanceId,
    epoch: 1,
    leaseUntil: null,
  };
}

function record({ executions }: Pick<Deps, 'executions'>, execution: Execution, run: RunRequest): Promise<boolean> {
  const { _id, organizationId, runKeyId, createdAt } = execution;
  const payload = { _id, organizationId, args: run.argsText, output: null, messages: '[]', createdAt };
  if (run.key === undefined || runKeyId === null) return executions.record(execution, payload);
  return executions.record(execution, payload, {
    _id: runKeyId,
    organizationId,
    key: run.key,
    requestHash: requestHashOf(run),
    executionId: _id,
    createdAt,
  });
}

/** Another request took the key since it was looked up: that run's answer is ours. One that was withdrawn since is not to be told from one that starts. */
async function answerOfWinner(
  deps: Pick<Deps, 'executions'>,
  organizationId: string,
  run: RunRequest,
): Promise<RunAgentResponse> {
  const answer = run.key === undefined ? undefined : await replay(deps, organizationId, run.key, run);
  if (!answer) throw new ServiceError('RUN_IN_PROGRESS', undefined, { headers: { 'Retry-After': '1' } });
  return answer;
}

/** Evaluates under a heartbeat. A client that goes away cancels the run, unless it can come back for it with its key. */
async function evaluateOwned(
  deps: RunDeps,
  execution: Execution,
  version: LoadedVersion,
  run: RunRequest,
  context: CallContext,
): Promise<Evaluated & { startedAt: string | null }> {
  const call = { principal: context.principal, requestId: context.requestId };
  let startedAt: string | null = null;
  const heartbeat = startHeartbeat(deps, execution, () => startedAt, call);
  const signal = run.key === undefined ? AbortSignal.any([heartbeat.lost, context.signal]) : heartbeat.lost;
  try {
    const evaluated = await evaluate(deps, execution, version, {
      argsText: run.argsText,
      signal,
      begun: () => {
        startedAt = isoTime(deps.clock.now());
      },
    });
    return { ...evaluated, startedAt };
  } catch (error) {
    try {
      await withdraw(deps, execution);
    } finally {
      await deps.releases.begin(deps.credits, execution._id, call);
    }
    throw error;
  } finally {
    heartbeat.stop();
  }
}

/** The commit point: end, charge and events in one batch. Undefined: the reaper took the run; its result is discarded. */
async function end(
  { executions, clock }: Pick<Deps, 'executions' | 'clock'>,
  execution: Execution,
  { price }: LoadedVersion,
  evaluated: Evaluated,
): Promise<Execution | undefined> {
  const finishedAt = isoTime(clock.now());
  const ended: Execution = { ...execution, ...evaluated.end, chargeMicros: chargeOf(price, evaluated.end), finishedAt };
  try {
    return (await executions.finish(ended, evaluated, endEvents(ended, finishedAt))) ? ended : undefined;
  } catch (cause) {
    const facts = { success: false, sessionId: execution.sessionId, agentExecutionId: execution._id };
    throw new ServiceError('OUTCOME_UNKNOWN', undefined, { facts, cause });
  }
}

async function answerOfTaken(
  { executions }: Pick<Deps, 'executions'>,
  { organizationId, _id }: Execution,
): Promise<RunAgentResponse> {
  const taken = await executions.find(organizationId, _id);
  if (!taken) throw new ServiceError('INTERNAL', undefined, { cause: new Error(`execution ${_id} is gone`) });
  return answerOf(taken, { output: null, messages: '[]' });
}
