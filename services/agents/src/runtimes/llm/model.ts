import type { ModelMessage } from 'ai';
import { AgentFault } from '../network/network-run.ts';
import { noCompletion, type Completion, type ModelToolCall } from './completion.ts';

/** Posts a request to the model's endpoint, and gives its completion. @throws AgentFault */
export type PostToModel = (request: { url: URL; headers: Record<string, string>; body: string }) => Promise<Completion>;

/** A tool that the model may ask to be called. */
export interface ModelTool {
  name: string;
  description: string;
  /** JSON Schema of its input. */
  schema: object;
}

interface Prompt {
  url: string;
  model: string;
  apiKey?: string | undefined;
  system?: string | undefined;
  messages: ModelMessage[];
  temperature?: number | undefined;
  maxOutputTokens?: number | undefined;
  /** Asks for JSON by this schema. */
  outputSchema?: Record<string, unknown> | undefined;
  tools: readonly ModelTool[];
  post: PostToModel;
  signal: AbortSignal;
}

export interface ModelAnswer {
  text: string;
  toolCalls: ModelToolCall[];
  /** Why the text is no whole answer. */
  fault: string | undefined;
  /** As the endpoint says; undefined when it does not say. */
  tokensIn: number | undefined;
  tokensOut: number | undefined;
}

const FAULTS: Partial<Record<string, string>> = {
  length: "The model's answer was cut off at its limit of tokens",
  'content-filter': "The model's answer was withheld by a filter",
};

/** The library takes 30 MB of memory, which a service without language models need not have. */
const load = async () => {
  const [ai, provider] = await Promise.all([import('ai'), import('@ai-sdk/openai-compatible')]);
  // Its warnings would go to the console, past the log.
  globalThis.AI_SDK_LOG_WARNINGS = false;
  return { ...ai, ...provider };
};

/**
 * Asks a model once, by the chat completions of OpenAI. The only module that knows the library.
 * @throws AgentFault: no answer, or one that is no chat completion; the reason of `signal`
 */
export async function askModel(prompt: Prompt): Promise<ModelAnswer> {
  const { url, model, apiKey, messages, outputSchema, tools, post, signal } = prompt;
  const { createOpenAICompatible, generateText, AISDKError, Output, tool, jsonSchema } = await load();
  let toolCalls: ModelToolCall[] = [];
  const provider = createOpenAICompatible({
    ...{ name: 'model', baseURL: url, supportsStructuredOutputs: true },
    ...(apiKey === undefined ? {} : { apiKey }),
    async fetch(to, init) {
      const headers = Object.fromEntries(new Headers(init?.headers));
      const completion = await post({ url: new URL(to), headers, body: init?.body as string });
      ({ toolCalls } = completion);
      return new Response(completion.text, { headers: { 'content-type': 'application/json' } });
    },
  });
  try {
    const { text, finishReason, usage } = await generateText({
      ...{ model: provider(model), messages, maxRetries: 0, abortSignal: signal },
      ...(prompt.system === undefined ? {} : { system: prompt.system }),
      ...(prompt.temperature === undefined ? {} : { temperature: prompt.temperature }),
      ...(prompt.maxOutputTokens === undefined ? {} : { maxOutputTokens: prompt.maxOutputTokens }),
      // Our own checks tell what is wrong with an answer, so the library only asks for JSON by the schema.
      ...(outputSchema === undefined ? {} : { output: { ...Output.text(), responseFormat: jsonBy(outputSchema) } }),
      // The library only tells the model of the tools: what it asks for goes past the library (completionOf).
      ...(tools.length === 0
        ? {}
        : {
            tools: Object.fromEntries(
              tools.map(({ name, description, schema }) => [
                name,
                tool({ description, inputSchema: jsonSchema(schema as Record<string, never>) }),
              ]),
            ),
          }),
      // OpenAI's strict form refuses most schemas; others keep to the schema either way.
      providerOptions: { model: { strictJsonSchema: false } },
      experimental_download: (files) =>
        files.length === 0 ? Promise.resolve([]) : Promise.reject(new AgentFault('The model answered with a file')),
    });
    const fault = FAULTS[finishReason];
    return { text, toolCalls, fault, tokensIn: usage.inputTokens, tokensOut: usage.outputTokens };
  } catch (error) {
    signal.throwIfAborted();
    // Its messages hold texts of the endpoint.
    if (AISDKError.isInstance(error)) throw noCompletion();
    throw error;
  }
}

const jsonBy = (schema: Record<string, unknown>) => Promise.resolve({ type: 'json' as const, schema, name: 'output' });
