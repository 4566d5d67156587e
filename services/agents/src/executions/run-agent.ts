import { createHash } from 'node:crypto';
import { organizationOfCall, type CallContext, type CallOptions } from 'platform/rpc/call.ts';
import { canonicalJson } from 'platform/core/canonical-json.ts';
import { isoTime } from 'platform/core/clock.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { newId, timeOfId } from 'platform/core/ids.ts';
import { isSampled, traceScope } from 'platform/telemetry/traces.ts';
import { actorOf, servicePrincipal, type Principal } from 'platform/core/principal.ts';
import type { RunAgentRequest, RunAgentResponse } from 'proto/agents/v1/agents.ts';
import type { LoadedVersion } from '../definitions/version-loader.ts';
import type { Deps } from '../deps.ts';
import { answer, answerOfInterrupted, answerOfWinner, claimOf, replay } from './answer.ts';
import { performRun } from './perform-run.ts';
import { reserve } from './reservation.ts';
import { checkRunRequest, readArgs, type RunRequest } from './rules.ts';
import type { ExecutionRecord } from './store.ts';

type Needs = Parameters<typeof performRun>[0] & Pick<Deps, 'definitions' | 'loadVersion' | 'instanceId'>;

/**
 * One request for a run: claim → reserve → perform → answer. The run itself knows nothing of the request (performRun);
 * after a crash at any point the reaper completes it.
 */
export async function runAgent(deps: Needs, request: RunAgentRequest, context: CallContext): Promise<RunAgentResponse> {
  const organizationId = organizationOfCall(context);
  const requested = checkRunRequest(request);
  const claimed = await claimOf(deps, organizationId, requested);
  // An agent that cannot be run is refused before its args are parsed.
  let versionId = claimed ? undefined : await requireRunnable(deps, organizationId, requested);
  const run = await withArgs(deps, organizationId, requested);
  const earlier = claimed && (await replay(deps, organizationId, run, claimed));
  if (earlier) return earlier;
  versionId ??= await requireRunnable(deps, organizationId, requested);
  const version = await loadForArgs(deps, organizationId, versionId, run);

  const execution = newExecution(deps, version, run, context);
  if (!(await claim(deps, execution, run, context.principal))) return answerOfWinner(deps, organizationId, run);
  await reserve(deps, execution, version.price.maxMicros, callOf(context));

  // A client that disconnects cancels its run, unless it gave an idempotency key, with which it can fetch the answer.
  const cancel = run.key === undefined ? context.signal : undefined;
  const { argsText } = run;
  const reserved = {
    ...{ execution, version, argsText, idempotencyKey: idempotencyKeyOf(execution, run) },
    asked: context.principal,
  };
  const performed = await performRun(deps, reserved, callOf(context), cancel);
  return performed ? answer(performed.ended, performed) : answerOfInterrupted(deps, execution);
}

/** Only an operator may act as one, so for the trial run of an operator this service asks credits by itself. */
const callOf = ({ principal, requestId }: CallContext): CallOptions => ({
  principal: principal.kind === 'OPERATOR' ? servicePrincipal('agents', principal.organizationId) : principal,
  requestId,
});

/** A request with its args as a value; `hash` is that of agent and args when it has a key. */
interface Run extends RunRequest {
  args: unknown;
  hash: string | undefined;
}

/** @throws ServiceError MALFORMED_JSON, INVALID_REQUEST */
async function withArgs(
  { schedule }: Pick<Deps, 'schedule'>,
  organizationId: string,
  request: RunRequest,
): Promise<Run> {
  const { agentName, key } = request;
  const { args, argsText } = await schedule(organizationId, () => readArgs(request));
  const hash = key === undefined ? undefined : await schedule(organizationId, () => requestHash({ agentName, args }));
  return { ...request, args, argsText, hash };
}

/** Two requests with this hash count as the same request. */
const requestHash = (request: Pick<Run, 'agentName' | 'args'>): string =>
  createHash('sha256').update(canonicalJson(request)).digest('hex');

/**
 * What a run is known by outside of this service. The run that repeats an interrupted one with its key gets the same,
 * and no other one of this or another organization does.
 */
const idempotencyKeyOf = ({ _id, organizationId }: ExecutionRecord, { key, hash }: Run): string =>
  key === undefined
    ? _id
    : createHash('sha256')
        .update(JSON.stringify([organizationId, key, hash]))
        .digest('hex');

/** @returns the id of the published version. @throws ServiceError NOT_FOUND, AGENT_NOT_RUNNABLE */
async function requireRunnable(
  { definitions }: Pick<Deps, 'definitions'>,
  organizationId: string,
  { agentName }: RunRequest,
): Promise<string> {
  const agent = await definitions.byName(organizationId, agentName);
  if (!agent || agent.publishedVersionId === null) throw new ServiceError('NOT_FOUND', 'Agent not found');
  if (!agent.runnable) throw new ServiceError('AGENT_NOT_RUNNABLE');
  return agent.publishedVersionId;
}

/** @throws ServiceError INVALID_ARGS */
async function loadForArgs(
  deps: Pick<Deps, 'loadVersion'>,
  organizationId: string,
  versionId: string,
  { args }: Run,
): Promise<LoadedVersion> {
  const version = await deps.loadVersion(organizationId, versionId);
  const details = await version.checkArgs(args);
  if (details.length > 0) throw new ServiceError('INVALID_ARGS', undefined, { details });
  return version;
}

function newExecution(
  { clock, instanceId }: Pick<Deps, 'clock' | 'instanceId'>,
  { agent, version }: LoadedVersion,
  { key }: RunRequest,
  { principal, requestId }: CallContext,
): ExecutionRecord {
  const _id = newId(clock.now());
  return {
    _id,
    organizationId: principal.organizationId,
    sessionId: `api-${newId()}`,
    agent,
    agentVersion: version,
    status: 'queued',
    error: null,
    actor: actorOf(principal),
    chargeMicros: null,
    usage: null,
    requestId,
    ...(isSampled() && { traceId: traceScope()!.traceId }),
    runKeyId: key === undefined ? null : newId(clock.now()),
    // The time in the id: lists and retention find runs by it.
    createdAt: isoTime(timeOfId(_id)),
    startedAt: null,
    finishedAt: null,
    owner: instanceId,
    epoch: 1,
    leaseUntil: null,
  };
}

/**
 * Records the execution and claims its idempotency key. False: another execution has claimed the key.
 * @throws ServiceError TIER_LIMIT
 */
function claim(
  { executions }: Pick<Deps, 'executions'>,
  execution: ExecutionRecord,
  run: Run,
  principal: Principal,
): Promise<boolean> {
  const { _id, organizationId, runKeyId, createdAt } = execution;
  const payload = { _id, organizationId, args: run.argsText, createdAt };
  const key =
    run.key === undefined || run.hash === undefined || runKeyId === null
      ? undefined
      : { _id: runKeyId, organizationId, key: run.key, requestHash: run.hash, executionId: _id, createdAt };
  return executions.create(execution, payload, key, principal);
}
