import type { ServerResponse } from 'node:http';
import { answerWith } from '../network/endpoint.ts';

/** The body of a request to `/chat/completions`, as far as tests look at it. */
export interface ChatRequest {
  model: string;
  messages: { role: string; content: string }[];
  temperature?: number;
  max_tokens?: number;
  tools?: { function: { name: string; description: string; parameters: unknown } }[];
  response_format?: { type: string; json_schema: { schema: unknown; strict: boolean } };
}

export const chatOf = ({ body }: { body: string }): ChatRequest => JSON.parse(body) as ChatRequest;

/** A chat completion with this text, for 10 tokens read and 5 written. */
export const completionOf = (content: unknown, { finish_reason = 'stop', ...more }: Record<string, unknown> = {}) => ({
  ...{ id: 'chatcmpl-1', object: 'chat.completion', created: 1_700_000_000, model: 'tested-model' },
  choices: [{ index: 0, finish_reason, message: { role: 'assistant', content } }],
  usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
  ...more,
});

/** Answers as a model that says this text. */
export const say = (response: ServerResponse, content: unknown, more?: Record<string, unknown>): void =>
  answerWith(response, completionOf(content, more));

/**
 * Answers as a model that calls these tools; an input that is a symbol is written as its text.
 * @param broken stands in place of the last call
 */
export function callTools(
  response: ServerResponse,
  calls: readonly (readonly [name: string, input: unknown])[],
  broken?: unknown,
): void {
  const tool_calls: unknown[] = calls.map(([name, input], index) => ({
    ...{ id: `call-${index}`, type: 'function' },
    function: { name, arguments: typeof input === 'symbol' ? input.description : JSON.stringify(input) },
  }));
  if (broken !== undefined) tool_calls.splice(-1, 1, broken);
  const completion = completionOf(null, { finish_reason: 'tool_calls' });
  Object.assign(completion.choices[0]!.message, { tool_calls });
  answerWith(response, completion);
}
