import { parseJson } from 'platform/core/parse-json.ts';
import { messagesOf } from '../messages.ts';
import { makeJsonText } from '../json-text.ts';
import { AgentFault, type Performed } from '../network/network-run.ts';
import type { Posted } from '../network/post.ts';

const ERROR_CHARACTERS = 1_000;
const jsonText = makeJsonText({
  byteLength: Buffer.byteLength,
  isFunction: () => false,
  fail(message) {
    throw new AgentFault(message);
  },
});

/**
 * Reads `{"output": …}` or `{"error": "a text for the caller"}` of an answer with status 200 to 299, either with
 * `"messages": ["…"]` for the trace. Nothing else of the answer is shown to the caller.
 * @param given.redact takes secrets out of a text for the caller
 * @throws AgentFault
 */
export function answerOf(
  { status, headers, body }: Posted,
  { outputBytes, trace, redact }: { outputBytes: number; trace: boolean; redact(text: string): string },
): Performed {
  if (status >= 300 && status < 400)
    throw new AgentFault(`The agent's endpoint redirects (status ${status}), which is not followed`);
  if (status < 200 || status > 299) throw new AgentFault(`The agent's endpoint answered with status ${status}`);
  if ((headers['content-encoding'] ?? 'identity') !== 'identity')
    throw new AgentFault("The answer of the agent's endpoint is compressed");
  const { output, error, messages: texts = [], ...others } = membersOf(body);
  const isList = Array.isArray(texts) && texts.every((text) => typeof text === 'string');
  const isError = typeof error === 'string' && output === undefined;
  const isOutput = output !== undefined && error === undefined;
  if (!(isList && (isError || isOutput)) || Object.keys(others).length > 0)
    throw new AgentFault('The answer of the agent\'s endpoint must be {"output": …} or {"error": "…"}');
  const messages = trace ? messagesOf(texts.map(redact)) : [];
  if (isError) throw new AgentFault(redact(error).slice(0, ERROR_CHARACTERS), messages);
  return { outputText: jsonText(output, outputBytes), messages, redact };
}

function membersOf(body: Buffer): Record<string, unknown> {
  let value: unknown;
  try {
    value = parseJson(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    throw new AgentFault("The answer of the agent's endpoint is not JSON");
  }
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}
