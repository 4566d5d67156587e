import type { FairScheduler } from 'platform/core/fair-scheduler.ts';
import { codeOf, ServiceError, type KnownReason } from 'platform/core/errors.ts';
import { inScope, traceScope } from 'platform/telemetry/traces.ts';
import { parseJson } from 'platform/core/parse-json.ts';
import { isObject, membersOf } from 'platform/json/parts.ts';
import { strictJsonOf } from 'platform/json/strict-text.ts';
import { Principal } from 'platform/core/principal.ts';
import type { LoadedVersion } from '../definitions/version-loader.ts';
import type { CallbackTokens } from '../callback-tokens/store.ts';
import type { ExecutionRecord } from '../executions/store.ts';
import { MAX_INPUT_BYTES } from '../runtimes/runners/tool-calls.ts';
import { MAX_READ_BYTES, MEMORY_OPERATIONS, type Memory, type MemoryOperation } from './memory-operations.ts';
import { mayWrite, type Tools } from './rules.ts';

/** The platform is at fault, so that the run cannot go on. */
export class ToolFault extends Error {
  override readonly name = 'ToolFault';
}

/** The tools of one run: what its definition lists, for its organization. */
export interface RunTools {
  /** The operations on memory objects that the run may call, and the types that it may name. */
  readonly operations: readonly MemoryOperation[];
  readonly memoryTypes: readonly string[];
  /** Further calls are refused. */
  readonly maxCalls: number;
  /**
   * Calls an operation by its name with a JSON text, as long as the run may make calls.
   * @returns JSON text: {"result": …}, or {"error": {code, message, …}} with what REST clients get in an error
   * @throws ToolFault; the reason of `signal`
   */
  call(operation: string, inputText: string, signal: AbortSignal): Promise<string>;
  /** A token by which the customer's endpoint calls the REST API for this run. */
  issueCallbackToken(): Promise<{ token: string; expiresAt: string }>;
}

/** What a call may meet that the run itself did not cause. */
const OF_THE_PLATFORM: readonly KnownReason[] = ['UNAVAILABLE', 'OUTCOME_UNKNOWN', 'INTERNAL', 'UNAUTHENTICATED'];

/** @param given.asked whoever asked for the run: the limits of the organization's tier come from there */
export function runTools(
  { memory, callbackTokens, schedule }: { memory: Memory; callbackTokens: CallbackTokens; schedule: FairScheduler },
  { execution, version, asked }: { execution: ExecutionRecord; version: LoadedVersion; asked: Principal },
): RunTools | undefined {
  const { tools, limits } = version;
  if (!tools) return undefined;
  const { organizationId, requestId } = execution;
  const operations = MEMORY_OPERATIONS.filter(({ writes }) => !writes || mayWrite(tools));
  const principal = principalOf(execution, tools, asked);
  let calls = 0;
  // A runner asks by a message, which comes in no scope.
  const scope = traceScope();

  async function perform(name: string, inputText: string, signal: AbortSignal): Promise<string> {
    const operation = operations.find((one) => one.name === name);
    if (!operation) throw new ServiceError('FORBIDDEN', `The agent has no tool memory.${name.slice(0, 50)}`);
    const input = await schedule(organizationId, () => inputOf(operation, inputText));
    return inScope(scope, () => operation.perform(memory, input, { principal, requestId, signal }));
  }

  return {
    operations,
    memoryTypes: tools.memory.types,
    maxCalls: limits.maxToolCalls,
    async call(name, inputText, signal) {
      calls += 1;
      if (calls > limits.maxToolCalls)
        return errorText(new ServiceError('FORBIDDEN', `The run may call its tools ${limits.maxToolCalls} times`));
      try {
        return `{"result":${await perform(name, inputText, signal)}}`;
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof ServiceError) || OF_THE_PLATFORM.includes(error.reason))
          throw new ToolFault('a tool of a run failed', { cause: error });
        return errorText(error);
      }
    },
    issueCallbackToken: () => callbackTokens.issue(execution, tools, limits),
  };
}

const principalOf = ({ _id, organizationId, agent }: ExecutionRecord, { memory }: Tools, asked: Principal) =>
  Principal.fromPartial({
    ...{ kind: 'AGENT_EXECUTION', organizationId, subject: _id, name: agent, memoryTypes: memory.types },
    ...{ tier: asked.tier, limits: asked.limits },
  });

/** @throws ServiceError MALFORMED_JSON, INVALID_REQUEST */
function inputOf({ compiled, name }: MemoryOperation, text: string) {
  if (Buffer.byteLength(text) > MAX_INPUT_BYTES)
    throw new ServiceError('INVALID_REQUEST', `The input of memory.${name} is larger than ${MAX_INPUT_BYTES} bytes`);
  const json = strictJsonOf(text);
  const value = parseJson(json.toString()) as Record<string, unknown>;
  const details = compiled.validate(value);
  if (details.length > 0)
    throw new ServiceError('INVALID_REQUEST', `The input of memory.${name} is not valid`, { details });
  // The content goes on as its text, which is what memory stores.
  const content = isObject(json) ? membersOf(json).find(([member]) => member === 'content')?.[1] : undefined;
  return { ...value, ...(content && { content: content.toString() }) };
}

function errorText({ reason, message, details, facts }: ServiceError): string {
  const told =
    reason === 'REPLY_TOO_LARGE' ? `The answer is larger than ${MAX_READ_BYTES} bytes; ask for fewer objects` : message;
  return JSON.stringify({
    error: { code: codeOf(reason), message: told, ...(details.length > 0 && { details }), ...facts },
  });
}
