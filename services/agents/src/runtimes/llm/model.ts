import type { ModelMessage } from 'ai';
import { AgentFault } from '../network/network-run.ts';
import { noCompletion } from './completion.ts';

/** Posts a request to the model's endpoint, and gives its completion (completionText). @throws AgentFault */
export type PostToModel = (request: { url: URL; headers: Record<string, string>; body: string }) => Promise<string>;

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
  post: PostToModel;
  signal: AbortSignal;
}

export interface ModelAnswer {
  text: string;
  /** Why the text is no whole answer. */
  fault: string | undefined;
  /** As the endpoint says; undefined when it does not say. */
  tokensIn: number | undefined;
  tokensOut: number | undefined;
}

const FAULTS: Partial<Record<string, string>> = {
  length: "The model's answer was cut off at its limit of tokens",
  'content-filter': "The model's answer was withheld by a filter",
  'tool-calls': 'The model called a tool, which its agent does not have',
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
  const { url, model, apiKey, messages, outputSchema, post, signal } = prompt;
  const { createOpenAICompatible, generateText, AISDKError, Output } = await load();
  const provider = createOpenAICompatible({
    ...{ name: 'model', baseURL: url, supportsStructuredOutputs: true },
    ...(apiKey === undefined ? {} : { apiKey }),
    async fetch(to, init) {
      const headers = Object.fromEntries(new Headers(init?.headers));
      const completion = await post({ url: new URL(to), headers, body: init?.body as string });
      return new Response(completion, { headers: { 'content-type': 'application/json' } });
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
      // OpenAI's strict form refuses most schemas; others keep to the schema either way.
      providerOptions: { model: { strictJsonSchema: false } },
      experimental_download: (files) =>
        files.length === 0 ? Promise.resolve([]) : Promise.reject(new AgentFault('The model answered with a file')),
    });
    return { text, fault: FAULTS[finishReason], tokensIn: usage.inputTokens, tokensOut: usage.outputTokens };
  } catch (error) {
    signal.throwIfAborted();
    // Its messages hold texts of the endpoint.
    if (AISDKError.isInstance(error)) throw noCompletion();
    throw error;
  }
}

const jsonBy = (schema: Record<string, unknown>) => Promise.resolve({ type: 'json' as const, schema, name: 'output' });
