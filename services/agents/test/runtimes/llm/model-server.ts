import type { ServerResponse } from 'node:http';
import { answerWith } from '../network/endpoint.ts';

/** The body of a request to `/chat/completions`, as far as tests look at it. */
export interface ChatRequest {
  model: string;
  messages: { role: string; content: string }[];
  temperature?: number;
  max_tokens?: number;
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
