import type { Violation } from 'platform/core/errors.ts';
import { compileSchema } from 'platform/json-schema/schema.ts';
import { noSuchSecret, SECRET_NAME, type SecretValues } from '../../secrets/rules.ts';
import { faultOfUrl, retriesSchema } from '../network/call-endpoint.ts';
import type { RuntimeDefinition } from '../rules.ts';
import { faultOfTemplate } from './template.ts';

export interface LanguageModel extends RuntimeDefinition {
  url: string;
  model: string;
  /** Name of the secret that is the API key. */
  secretRef?: string;
  /** Templates over the args; see fillTemplate. */
  system?: string;
  prompt: string;
  temperature?: number;
  maxOutputTokens?: number;
  maxTurns?: number;
  retries?: number;
}

export const DEFAULT_MAX_TURNS = 10;

const template = (description: string) => ({ type: 'string', minLength: 1, maxLength: 65_536, description });
/** JSON Schema of the member `runtime`. */
export const schema = {
  description:
    'A language model, asked by the chat completions of OpenAI. With an `outputSchema` it is asked for JSON by it, once ' +
    'more if its answer breaks it; without, the output is its text. With `tools`, it may call `memory_find` and the like.',
  examples: [
    {
      type: 'llm',
      ...{ url: 'https://api.openai.com/v1', model: 'gpt-5-mini', secretRef: 'openai-key' },
      ...{ system: 'You sum up letters in one sentence.', prompt: '{{args.letter}}', maxOutputTokens: 500 },
    },
  ],
  type: 'object',
  required: ['type', 'url', 'model', 'prompt'],
  additionalProperties: false,
  properties: {
    type: { const: 'llm', description: 'The name of the runtime.' },
    url: {
      ...{ type: 'string', minLength: 1, maxLength: 2_048 },
      description: 'Where `/chat/completions` is, by https: `https://api.openai.com/v1`, say.',
    },
    model: { type: 'string', minLength: 1, maxLength: 200, description: 'The name of the model.' },
    secretRef: {
      type: 'string',
      pattern: SECRET_NAME,
      description: 'The secret that is the API key, if one is needed.',
    },
    system: template('The system message; `{{args.member}}` is replaced as in `prompt`.'),
    prompt: template('The user message. `{{args}}`, `{{args.member}}` and `{{args.list.0}}` are replaced by the args.'),
    temperature: { type: 'number', minimum: 0, maximum: 2, description: 'How freely the model chooses its words.' },
    maxOutputTokens: {
      ...{ type: 'integer', minimum: 1, maximum: 1_000_000 },
      description: 'Tokens of an answer; then the run has failed.',
    },
    maxTurns: {
      ...{ type: 'integer', minimum: 1, maximum: 100, default: DEFAULT_MAX_TURNS },
      description: 'Answers of the model in one run, those that call tools among them; then the run has failed.',
    },
    retries: retriesSchema,
  },
};
const compiled = compileSchema(JSON.stringify(schema));
/** What a header may carry. */
export const API_KEY = /^[\x21-\x7e]+$/;

/** Why an agent with this member `runtime` could never run; their paths begin below the member. */
export async function violationsOf(
  { secretValues, networks }: { secretValues: SecretValues; networks: readonly string[] },
  organizationId: string,
  runtime: unknown,
): Promise<Violation[]> {
  const violations = compiled.validate(runtime, undefined, { showAllowed: true });
  if (violations.length > 0) return violations;
  const { url, secretRef, system = '', prompt } = runtime as LanguageModel;
  const secretFault = async (name: string): Promise<string | undefined> => {
    const [value] = await secretValues(organizationId, name);
    if (value === undefined) return noSuchSecret(name);
    return API_KEY.test(value) ? undefined : `the secret ${name} must be visible ASCII characters to be an API key`;
  };
  const faults = {
    '/url': faultOfUrl(url, networks),
    '/secretRef': secretRef === undefined ? undefined : await secretFault(secretRef),
    '/system': faultOfTemplate(system),
    '/prompt': faultOfTemplate(prompt),
  };
  return Object.entries(faults).flatMap(([path, message]) => (message === undefined ? [] : [{ path, message }]));
}
