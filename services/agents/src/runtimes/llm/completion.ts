import { parseJson } from 'platform/core/parse-json.ts';
import { AgentFault } from '../network/network-run.ts';

/**
 * What is read of a chat completion (OpenAI), as JSON text that only this service has written: its first choice and its
 * usage. The library parses what it is given by V8, whose parser is not safe with texts of strangers (ADR 19).
 * @throws AgentFault
 */
export function completionText(body: Buffer): string {
  const { choices, usage } = objectOf(bodyOf(body));
  const { message, finish_reason } = objectOf(Array.isArray(choices) ? choices[0] : undefined);
  const { content } = objectOf(message);
  if (typeof content !== 'string' && (content ?? null) !== null) throw noCompletion();
  const { prompt_tokens, completion_tokens } = objectOf(usage ?? {});
  return JSON.stringify({
    choices: [{ message: { role: 'assistant', content: content ?? '' }, finish_reason: textOrNull(finish_reason) }],
    // The library takes a count that is absent for 0.
    ...(isNumber(prompt_tokens) && isNumber(completion_tokens) && { usage: { prompt_tokens, completion_tokens } }),
  });
}

export const noCompletion = (): AgentFault => new AgentFault("The model's endpoint gave no chat completion");

function bodyOf(body: Buffer): unknown {
  try {
    return parseJson(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    throw noCompletion();
  }
}

function objectOf(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null) throw noCompletion();
  return value as Record<string, unknown>;
}

const textOrNull = (value: unknown): string | null => (typeof value === 'string' ? value : null);
const isNumber = (value: unknown): value is number => typeof value === 'number';
