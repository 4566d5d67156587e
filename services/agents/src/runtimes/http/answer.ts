import { parseJson } from 'platform/core/parse-json.ts';
import { isObject, membersOf } from 'platform/json/parts.ts';
import { messagesOf } from '../messages.ts';
import { AgentFault, outputTextOf, readAnswer, type Performed } from '../network/network-run.ts';
import type { Posted } from '../network/post.ts';

const ERROR_CHARACTERS = 1_000;
const NAMES = ['output', 'error', 'messages'];

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
  const json = readAnswer(body, { subject: "The answer of the agent's endpoint", redact, placeOf });
  const members = new Map(isObject(json) ? membersOf(json) : []);
  const output = members.get('output');
  const [error, texts = []] = ['error', 'messages'].map((name) => valueOf(members.get(name)));
  const isList = Array.isArray(texts) && texts.every((text) => typeof text === 'string');
  const isError = typeof error === 'string' && output === undefined;
  const isOutput = output !== undefined && error === undefined;
  if (!(isList && (isError || isOutput)) || [...members.keys()].some((name) => !NAMES.includes(name)))
    throw new AgentFault('The answer of the agent\'s endpoint must be {"output": …} or {"error": "…"}');
  const messages = trace ? messagesOf(texts.map(redact)) : [];
  if (isError) throw new AgentFault(redact(error).slice(0, ERROR_CHARACTERS), messages);
  return { outputText: outputTextOf(output!, { outputBytes }), messages, redact };
}

const valueOf = (json: Buffer | undefined): unknown => json && parseJson(json.toString());

/** The caller knows the output, not the answer around it. What is wrong with that has its place in the answer. */
const placeOf = (path: string): string => (/^\/output(\/|$)/.test(path) ? path.slice('/output'.length) : path);
