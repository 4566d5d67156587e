import type { Message } from 'proto/agents/v1/agents.ts';
import type { FairScheduler } from 'platform/core/fair-scheduler.ts';
import { parseJson } from 'platform/core/parse-json.ts';
import { makeRedact } from '../../secrets/redact.ts';
import type { SecretValues } from '../../secrets/rules.ts';
import { openTrace } from '../messages.ts';
import { callEndpoint, DEFAULT_RETRIES } from '../network/call-endpoint.ts';
import {
  AgentFault,
  OVERDUE_MS,
  outputTextOf,
  performOnNetwork,
  readAnswer,
  type Performed,
} from '../network/network-run.ts';
import type { Poster } from '../network/post.ts';
import type { Turns } from '../network/turns.ts';
import type { RunRequest, Runtime } from '../runtime.ts';
import { completionOf } from './completion.ts';
import { modelToolsOf, openConversation } from './conversation.ts';
import { askModel, type PostToModel } from './model.ts';
import { API_KEY, DEFAULT_MAX_TURNS, schema, violationsOf, type LanguageModel } from './definition.ts';
import { fillTemplate } from './template.ts';
import { countTokens } from './tokens.ts';

export interface LlmNeeds {
  poster: Poster;
  turns: Turns;
  secretValues: SecretValues;
  schedule: FairScheduler;
  /** Networks that may be called beside the public internet. */
  networks: readonly string[];
}

interface LlmUsage {
  calls: number;
  tokensIn: number;
  tokensOut: number;
}

/** What an answer may have beside its output, which is a JSON text within JSON. */
const ENVELOPE_BYTES = 1_048_576;
/** Of those that the model is told. */
const MAX_VIOLATIONS = 10;

/** Agents that are a prompt for a language model, at any endpoint with the chat completions of OpenAI. */
export function llmRuntime(needs: LlmNeeds): Runtime {
  const stopping = new AbortController();
  return {
    schema,
    units: ['calls', 'tokensIn', 'tokensOut'],
    takesTools: true,
    overdueMs: OVERDUE_MS,
    check: (organizationId, runtime) => violationsOf(needs, organizationId, runtime),
    run(request) {
      const usage = { calls: 0, tokensIn: 0, tokensOut: 0 };
      return performOnNetwork(request, { turns: needs.turns, stopping: stopping.signal, usage }, (signal) =>
        answer(needs, request, usage, signal),
      );
    },
    stop() {
      stopping.abort();
      needs.poster.close();
      return Promise.resolve();
    },
  };
}

/** Asks the model, once more if its answer breaks the output schema; it may call tools before it answers. */
async function answer(needs: LlmNeeds, request: RunRequest, usage: LlmUsage, signal: AbortSignal): Promise<Performed> {
  const { organizationId, outputSchema, tools } = request;
  const { secretRef, system, prompt, ...given } = request.runtime as LanguageModel;
  const { retries = DEFAULT_RETRIES, maxTurns = DEFAULT_MAX_TURNS, ...model } = given;
  const secrets = secretRef === undefined ? [] : await needs.secretValues(organizationId, secretRef);
  const [apiKey] = secrets;
  if (secretRef !== undefined && !API_KEY.test(apiKey ?? ''))
    throw new AgentFault('The secret of the agent is not set, or is no API key');
  const filled = await needs.schedule(organizationId, () => {
    const args = parseJson(request.argsText);
    return { system: system && fillTemplate(system, args), prompt: fillTemplate(prompt, args) };
  });

  const redact = makeRedact(secrets);
  const trace = request.trace ? openTrace(redact) : undefined;
  const messages = (): Message[] => trace?.messages() ?? [];
  const post: PostToModel = async (sent) => {
    const answered = await callEndpoint(needs.poster, {
      ...{ ...sent, whose: 'model', organizationId, retries, usage, signal },
      headers: () => sent.headers,
      maxBytes: ENVELOPE_BYTES + 2 * request.limits.outputBytes,
      mayPass: (status) => status === 429 || status >= 500,
    });
    if (answered.status < 200 || answered.status > 299)
      throw new AgentFault(`The model's endpoint answered with status ${answered.status}`);
    return needs.schedule(organizationId, () => completionOf(answered.body));
  };
  const modelTools = modelToolsOf(tools);
  const conversation = openConversation({
    ...{ tools, maxTurns, signal },
    note: (text) => trace?.note(text),
    ask(messages) {
      const asked = { ...model, apiKey, system: filled.system, messages, outputSchema, signal };
      return countTokens(usage, post, (counted) => askModel({ ...asked, tools: modelTools, post: counted }));
    },
  });

  try {
    const read = (said: string): Promise<Buffer> =>
      needs.schedule(organizationId, () =>
        readAnswer(outputSchema ? said : JSON.stringify(said), { subject: "The model's answer", redact }),
      );
    const first = await conversation.say(filled.prompt);
    const fault = outputSchema && (await faultOf(first, read, request));
    const last = fault ? await conversation.say(`${fault} Answer again, with JSON only.`) : first;
    return { outputText: outputTextOf(await read(last), request.limits), messages: messages(), redact };
  } catch (error) {
    throw error instanceof AgentFault ? new AgentFault(redact(error.message), messages(), error.outcome) : error;
  }
}

/** What is wrong with an answer, by the output schema or as an output, in words for the model. */
async function faultOf(
  said: string,
  read: (said: string) => Promise<Buffer>,
  { checkOutput }: RunRequest,
): Promise<string | undefined> {
  let json: Buffer;
  try {
    json = await read(said);
  } catch (error) {
    if (!(error instanceof AgentFault)) throw error;
    return `${error.message}.`;
  }
  const violations = await checkOutput(json.toString());
  const told = violations.slice(0, MAX_VIOLATIONS).map(({ path, message }) => `${path || '/'} ${message}`);
  return told.length === 0 ? undefined : `Your answer does not match the JSON Schema: ${told.join('; ')}.`;
}
