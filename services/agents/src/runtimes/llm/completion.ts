import { isUtf8 } from 'node:buffer';
import { parseJson } from 'platform/core/parse-json.ts';
import { AgentFault, readAnswer } from '../network/network-run.ts';

/** Of one answer. */
const MAX_TOOL_CALLS = 32;
const MAX_NAME_CHARACTERS = 200;

/** A tool that the model asks to be called. */
export interface ModelToolCall {
  id: string;
  name: string;
  /** As the model wrote it: JSON text, if it keeps to its schema. */
  input: string;
}

export interface Completion {
  /** A chat completion without the calls of tools, for the library. */
  text: string;
  toolCalls: ModelToolCall[];
}

/**
 * What is read of a chat completion (OpenAI): its first choice and its usage, as JSON text that only this service has
 * written, and the calls of tools. The library parses what it is given by V8, whose parser is not safe with texts of
 * strangers (ADR 19).
 * @throws AgentFault
 */
export function completionOf(body: Buffer): Completion {
  const { choices, usage } = objectOf(bodyOf(body));
  const { message, finish_reason } = objectOf(Array.isArray(choices) ? choices[0] : undefined);
  const { content, tool_calls } = objectOf(message);
  if (typeof content !== 'string' && (content ?? null) !== null) throw noCompletion();
  const { prompt_tokens, completion_tokens } = objectOf(usage ?? {});
  const text = JSON.stringify({
    choices: [{ message: { role: 'assistant', content: content ?? '' }, finish_reason: textOrNull(finish_reason) }],
    // The library takes a count that is absent for 0.
    ...(isNumber(prompt_tokens) && isNumber(completion_tokens) && { usage: { prompt_tokens, completion_tokens } }),
  });
  return { text, toolCalls: toolCallsOf(tool_calls ?? []) };
}

function toolCallsOf(calls: unknown): ModelToolCall[] {
  if (!Array.isArray(calls)) throw noCompletion();
  if (calls.length > MAX_TOOL_CALLS) throw new AgentFault(`The model called more than ${MAX_TOOL_CALLS} tools at once`);
  return calls.map((call) => {
    const { id, function: called } = objectOf(call);
    const { name, arguments: input } = objectOf(called);
    if (!isName(id) || !isName(name) || typeof input !== 'string') throw noCompletion();
    return { id, name, input };
  });
}

export const noCompletion = (): AgentFault => new AgentFault("The model's endpoint gave no chat completion");

function bodyOf(body: Buffer): unknown {
  if (!isUtf8(body)) readAnswer(body, { subject: "The model's answer", redact: (text) => text, placeOf });
  try {
    return parseJson(body.toString());
  } catch {
    throw noCompletion();
  }
}

/** The caller knows the output, not the completion around it. */
const placeOf = (path: string): string => (path === '/choices/0/message/content' ? '' : path);

function objectOf(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null) throw noCompletion();
  return value as Record<string, unknown>;
}

const textOrNull = (value: unknown): string | null => (typeof value === 'string' ? value : null);
const isName = (value: unknown): value is string => typeof value === 'string' && value.length <= MAX_NAME_CHARACTERS;
const isNumber = (value: unknown): value is number => typeof value === 'number';
