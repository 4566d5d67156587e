import { untilAborted } from 'platform/core/until-aborted.ts';
import type { Message } from 'proto/agents/v1/agents.ts';
import { ToolFault } from '../../tools/run-tools.ts';
import { InvalidOutputError, readOutput } from '../output.ts';
import type { RunLimits, Usage } from '../rules.ts';
import type { Failure } from '../runners/evaluation.ts';
import type { RunRequest, RunResult } from '../runtime.ts';
import type { Turns } from './turns.ts';

/** A run ends at its limit of time; the check of its output waits for that of others. */
export const OVERDUE_MS = 30_000;

/** A run fails by a fault of its agent. The message may be shown to the caller, so it holds no text of others. */
export class AgentFault extends Error {
  override readonly name = 'AgentFault';
  readonly messages: Message[];
  readonly outcome: Failure;
  /** @param messages for the trace */
  constructor(message: string, messages: Message[] = [], outcome: Failure = 'failed') {
    super(message);
    this.messages = messages;
    this.outcome = outcome;
  }
}

/**
 * Reads what an answer says, as JSON text.
 * @param given.subject what it is, for messages
 * @param given.redact takes secrets out of a text for the caller
 * @param given.placeOf as in readOutput
 * @throws AgentFault
 */
export function readAnswer(
  given: string | Buffer,
  { subject, redact, placeOf }: { subject: string; redact(text: string): string; placeOf?(path: string): string },
): Buffer {
  try {
    return readOutput(given, placeOf);
  } catch (error) {
    if (error instanceof InvalidOutputError) throw new AgentFault(redact(error.message), [], 'output_invalid');
    throw new AgentFault(`${subject} is not JSON`);
  }
}

/** An output as it is given and stored. @throws AgentFault */
export function outputTextOf(json: Buffer, { outputBytes }: Pick<RunLimits, 'outputBytes'>): string {
  if (json.length > outputBytes) throw new AgentFault(`The output is larger than ${outputBytes} bytes`);
  return json.toString();
}

/** What a success gives. */
export interface Performed {
  outputText: string;
  messages: Message[];
  redact(text: string): string;
}

/**
 * Performs a run that waits on the network rather than on a runner: in its turn, and until its limit of time, whether
 * `perform` ends by then or not.
 * @param given.stopping aborts when the service stops
 * @param given.usage what `perform` has used so far, whichever way the run ends
 * @param perform throws AgentFault, or anything once its signal is aborted
 * @throws ServiceError QUEUE_FULL; what `perform` throws else
 */
export async function performOnNetwork(
  request: RunRequest,
  { turns, stopping, usage }: { turns: Turns; stopping: AbortSignal; usage: Usage },
  perform: (signal: AbortSignal) => Promise<Performed>,
): Promise<RunResult> {
  const endTurn = await turns.take(request.organizationId, AbortSignal.any([request.signal, stopping]));
  if (!endTurn) return stopping.aborted ? { outcome: 'interrupted' } : { outcome: 'cancelled', usage };
  const deadline = AbortSignal.timeout(request.limits.wallMs);
  const signal = AbortSignal.any([request.signal, deadline, stopping]);
  // What does not end may go on counting.
  const used = (): Usage => ({ ...usage });
  request.onStart();
  try {
    return { outcome: 'succeeded', ...(await untilAborted(signal, perform(signal))), usage: used() };
  } catch (error) {
    if (error instanceof AgentFault)
      return { outcome: error.outcome, message: error.message, messages: error.messages, usage: used() };
    if (stopping.aborted || error instanceof ToolFault) return { outcome: 'interrupted' };
    if (request.signal.aborted) return { outcome: 'cancelled', usage: used() };
    if (deadline.aborted) return { outcome: 'timed_out', usage: used() };
    throw error;
  } finally {
    endTurn();
  }
}
